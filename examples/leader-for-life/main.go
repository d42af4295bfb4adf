// Leader-for-life is a program of which one pod works at a time. Run it in a Deployment with several replicas; pkg/leader says
// what its service account must be allowed to do.
package main

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/olmkit/olmkit/pkg/leader"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := leader.Become(ctx, "my-operator-lock"); err != nil {
		log.Fatal(err) //nolint:gocritic // the process ends, and with it the notification
	}
	log.Print("leading")
	<-ctx.Done() // what only one pod may do
}
