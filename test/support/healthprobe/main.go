// Healthprobe asks a gRPC server whether it is well, and exits with 1 if not. It stands in images of tests where OLM's probes of a
// catalog's pod call grpc_health_probe.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	addr := flag.String("addr", "", "HOST:PORT of the server")
	limit := flag.Duration("rpc-timeout", time.Second, "how long its answer may take")
	flag.Parse()
	if err := ask(*addr, *limit); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func ask(addr string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err == nil && answer.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		err = fmt.Errorf("the server says %s", answer.Status)
	}
	return err
}
