package main

import (
	"context"
	"fmt"
	"log"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	dp "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	gpuResource  = "nvidia.com/gpu"
	pluginFolder = "/var/lib/kubelet/device-plugins" // fixed in the kubelet
	pluginSocket = "fakegpu.sock"
	sickFile     = "fakegpu-unhealthy"
)

// runFakeGPU is a device plugin that offers COUNT GPUs which do not exist. A container that gets some
// sees their ids in NVIDIA_VISIBLE_DEVICES. Ids written into the file fakegpu-unhealthy of the
// plugin folder, separated by white space, are reported Unhealthy.
func runFakeGPU() {
	count, err := strconv.Atoi(os.Getenv("COUNT"))
	if err != nil {
		log.Fatalf("COUNT must be a number of GPUs: %v", err)
	}
	plugin := &fakeGPU{count: count}
	for ; ; time.Sleep(time.Second) {
		if err := plugin.serveUntilKubeletRestarts(); err != nil {
			log.Print(err)
		}
	}
}

type fakeGPU struct {
	dp.UnimplementedDevicePluginServer
	count int
}

// serveUntilKubeletRestarts also returns when there is no kubelet to register with: the caller tries again.
func (p *fakeGPU) serveUntilKubeletRestarts() error {
	path := filepath.Join(pluginFolder, pluginSocket)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	dp.RegisterDevicePluginServer(server, p)
	go server.Serve(listener)
	defer server.Stop()
	if err := register(); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	log.Printf("registered %d of %s", p.count, gpuResource)
	// A kubelet removes every socket in the folder as it starts.
	for {
		time.Sleep(500 * time.Millisecond)
		if _, err := os.Lstat(path); err != nil {
			return fmt.Errorf("the kubelet restarted: %w", err)
		}
	}
}

func register() error {
	kubelet := "unix://" + filepath.Join(pluginFolder, "kubelet.sock")
	connection, err := grpc.NewClient(kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = dp.NewRegistrationClient(connection).Register(ctx, &dp.RegisterRequest{
		Version: dp.Version, Endpoint: pluginSocket, ResourceName: gpuResource})
	return err
}

// health of each device by its id. Without the file all are well.
func (p *fakeGPU) health() map[string]string {
	health := map[string]string{}
	for i := range p.count {
		health[fmt.Sprintf("gpu-%d", i)] = dp.Healthy
	}
	sick, err := os.ReadFile(filepath.Join(pluginFolder, sickFile))
	if err != nil && !os.IsNotExist(err) {
		log.Print(err)
	}
	for _, id := range strings.Fields(string(sick)) {
		if _, ours := health[id]; ours {
			health[id] = dp.Unhealthy
		}
	}
	return health
}

func (p *fakeGPU) ListAndWatch(_ *dp.Empty, stream dp.DevicePlugin_ListAndWatchServer) error {
	var sent map[string]string
	for ; stream.Context().Err() == nil; time.Sleep(500 * time.Millisecond) {
		health := p.health()
		if sent != nil && maps.Equal(health, sent) {
			continue
		}
		sent = health
		response := &dp.ListAndWatchResponse{}
		for id, state := range health {
			response.Devices = append(response.Devices, &dp.Device{ID: id, Health: state})
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
	return nil
}

func (p *fakeGPU) Allocate(_ context.Context, request *dp.AllocateRequest) (*dp.AllocateResponse, error) {
	response := &dp.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &dp.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")}})
	}
	return response, nil
}

func (p *fakeGPU) GetDevicePluginOptions(context.Context, *dp.Empty) (*dp.DevicePluginOptions, error) {
	return &dp.DevicePluginOptions{}, nil
}
