// Command probe is what the checks of a cluster run in their pods: an HTTP client, an HTTP server and
// an eater of memory, in one static file.
//
//	probe get URL | serve ADDR | cat FILE | eat
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "get":
		get(os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == "serve":
		serve(os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == "cat":
		cat(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "eat":
		eat()
	default:
		log.Fatal("usage: probe get URL | serve ADDR | cat FILE | eat")
	}
}

func get(url string) {
	client := &http.Client{Timeout: 3 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		log.Fatal(err)
	}
	if answer.StatusCode >= 300 {
		log.Fatal(answer.Status)
	}
}

// serve answers every path with the host's name.
func serve(address string) {
	host, err := os.Hostname()
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: address, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, host) })}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	log.Print("serving on ", address)
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		log.Fatal(err)
	}
}

func cat(path string) {
	content, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	os.Stdout.Write(content)
}

// eat takes memory until the kernel ends it.
func eat() {
	var held [][]byte
	for {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		held = append(held, block)
		if len(held) > 1<<14 {
			log.Fatal("16 GiB taken: no memory limit here")
		}
	}
}
