// Command components holds the control plane of the embedded cluster in one program, so that what etcd and
// Kubernetes share is compiled and linked once. The name it is called by, or else its first argument, chooses the
// component; the rest is that component's own command line.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	kubeapiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubecontrollermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubescheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var components = map[string]func() *cobra.Command{
	"kube-apiserver":          kubeapiserver.NewAPIServerCommand,
	"kube-controller-manager": kubecontrollermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return kubescheduler.NewSchedulerCommand() },
}

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	if name == "components" && len(args) > 0 {
		name, args = args[0], args[1:]
	}
	os.Args = append([]string{name}, args...)
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command, ok := components[name]
	if !ok {
		names := []string{"etcd"}
		for known := range components {
			names = append(names, known)
		}
		fmt.Fprintf(os.Stderr, "no component %q; there are %s\n", name, strings.Join(names, ", "))
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
