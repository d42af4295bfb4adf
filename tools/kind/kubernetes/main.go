// Command kubernetes holds what of Kubernetes runs on a node in one program, so that what its parts share is compiled and
// linked once. The name it is called by chooses the part.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubeadmerrors "k8s.io/kubernetes/cmd/kubeadm/app/util/errors"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	var command *cobra.Command
	switch name := filepath.Base(os.Args[0]); name {
	case "kubeadm":
		kubeadmerrors.HandleError(kubeadm.Run())
		return
	case "kubectl":
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err)
		}
		return
	case "kubelet":
		command = kubelet.NewKubeletCommand(context.Background())
	case "kube-proxy":
		command = kubeproxy.NewProxyCommand()
	default:
		fmt.Fprintf(os.Stderr, "no part %q; there are kubeadm, kubectl, kubelet and kube-proxy\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}
