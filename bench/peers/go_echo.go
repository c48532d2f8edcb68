// SPDX-License-Identifier: MIT
// The echo server of compare_echo.py with Go: a goroutine for each connection.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func echo(peer net.Conn) {
	defer peer.Close()
	buffer := make([]byte, 16*1024)
	for {
		size, err := peer.Read(buffer)
		if err != nil {
			return
		}
		if _, err := peer.Write(buffer[:size]); err != nil {
			return
		}
	}
}

func main() {
	port := "0"
	if len(os.Args) == 3 && os.Args[1] == "--port" {
		port = os.Args[2]
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:"+port)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		<-stop
		os.Exit(0)
	}()
	fmt.Printf("listening on %s\n", listener.Addr())
	for {
		peer, err := listener.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go echo(peer)
	}
}
