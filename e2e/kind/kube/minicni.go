package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const conflistPath = "/etc/cni/net.d/10-minicni.conflist"

const conflist = `{"cniVersion":"1.0.0","name":"minicni","plugins":[
 {"type":"bridge","bridge":"cni0","isGateway":true,"hairpinMode":true,
  "ipam":{"type":"host-local","dataDir":"/run/cni-ipam","ranges":[[{"subnet":"%s"}]],"routes":[{"dst":"0.0.0.0/0"}]}},
 {"type":"portmap","capabilities":{"portMappings":true}}]}
`

// runMiniCNI is the network agent of a node whose peers share one L2 segment with it. It writes this
// node's CNI configuration from its PodCIDR, keeps a route to the PodCIDR of each other node, and
// masquerades what leaves the pods' subnet. It reads NODE_NAME and POD_SUBNET and runs ip and iptables.
func runMiniCNI() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	if endpoint := os.Getenv("CONTROL_PLANE_ENDPOINT"); endpoint != "" { // kind sets it: kube-proxy may not be up yet
		config.Host = "https://" + endpoint
	}
	config.Timeout = 10 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	written, masqueraded := "", false
	for ; ; time.Sleep(time.Second) {
		nodes, err := client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			log.Print("list nodes: ", err)
			continue
		}
		for i := range nodes.Items {
			if node := &nodes.Items[i]; node.Spec.PodCIDR != "" && node.Name == os.Getenv("NODE_NAME") {
				written = writeConflist(node.Spec.PodCIDR, written)
			}
		}
		routeToPeers(nodes.Items, os.Getenv("NODE_NAME"))
		if !masqueraded {
			masqueraded = masquerade(os.Getenv("POD_SUBNET"))
		}
	}
}

// writeConflist returns the subnet that the configuration on disk has.
func writeConflist(subnet, written string) string {
	if subnet == written {
		return written
	}
	// Renamed into place, since containerd reads the folder at any time.
	if err := os.WriteFile(conflistPath+".new", fmt.Appendf(nil, conflist, subnet), 0o644); err != nil {
		log.Print(err)
		return written
	}
	if err := os.Rename(conflistPath+".new", conflistPath); err != nil {
		log.Print(err)
		return written
	}
	log.Print("wrote the CNI configuration for ", subnet)
	return subnet
}

// routeToPeers asks for the routes each time: a node cut off from its network and joined again has lost them.
func routeToPeers(nodes []v1.Node, self string) {
	routes, err := exec.Command("ip", "route", "show").Output()
	if err != nil {
		log.Print("ip route show: ", err)
		return
	}
	for i := range nodes {
		node := &nodes[i]
		ip := internalIP(node)
		if node.Name == self || node.Spec.PodCIDR == "" || ip == "" {
			continue
		}
		if !bytes.Contains(routes, []byte(node.Spec.PodCIDR+" via "+ip+" ")) {
			run("ip", "route", "replace", node.Spec.PodCIDR, "via", ip)
		}
	}
}

func masquerade(subnet string) bool {
	rule := strings.Fields("POSTROUTING -s " + subnet + " ! -d " + subnet + " -m addrtype ! --dst-type LOCAL -j MASQUERADE")
	if exec.Command("iptables", append([]string{"-w", "-t", "nat", "-C"}, rule...)...).Run() == nil {
		return true
	}
	return run("iptables", append([]string{"-w", "-t", "nat", "-A"}, rule...)...)
}

func internalIP(node *v1.Node) string {
	for _, address := range node.Status.Addresses {
		if address.Type == v1.NodeInternalIP {
			return address.Address
		}
	}
	return ""
}

func run(name string, args ...string) bool {
	output, err := exec.Command(name, args...).CombinedOutput()
	log.Printf("%s %v: %v %s", name, args, err, bytes.TrimSpace(output))
	return err == nil
}
