// SPDX-License-Identifier: MIT
// The HTTP server of compare_http.py with Go: a text at /, and files below a directory.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go_http PORT DIRECTORY")
		os.Exit(2)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:"+os.Args[1])
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
	http.HandleFunc("/hello", func(answer http.ResponseWriter, _ *http.Request) {
		answer.Write([]byte("Hello, world\n"))
	})
	http.Handle("/", http.FileServer(http.Dir(os.Args[2])))
	fmt.Fprintln(os.Stderr, http.Serve(listener, nil))
}
