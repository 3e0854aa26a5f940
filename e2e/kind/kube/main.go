// Command kube is a multi-call binary: the Kubernetes components, etcd, CoreDNS and the node agents,
// chosen by argv[0] or by the first argument (`kube kubelet ...`).
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	cm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	_ "k8s.io/client-go/plugin/pkg/client/auth"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

func main() {
	name := filepath.Base(os.Args[0])
	if name == "kube" && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	command := func(c *cobra.Command) { os.Exit(cli.Run(c)) }
	switch name {
	case "etcd":
		etcdmain.Main(append([]string{"etcd"}, os.Args[1:]...))
	case "kube-apiserver":
		command(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		command(cm.NewControllerManagerCommand())
	case "kube-scheduler":
		command(scheduler.NewSchedulerCommand())
	case "kubelet":
		command(kubelet.NewKubeletCommand(context.Background()))
	case "kube-proxy":
		command(proxy.NewProxyCommand())
	case "kubectl":
		command(kubectl.NewDefaultKubectlCommand())
	case "kubeadm":
		if err := kubeadm.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "coredns":
		runCoreDNS()
	case "minicni":
		runMiniCNI()
	case "fakegpu":
		runFakeGPU()
	default:
		fmt.Fprintln(os.Stderr, "unknown component", name)
		os.Exit(2)
	}
}
