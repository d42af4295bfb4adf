//go:build linux

package operator_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This test binary is a program of pods, too: what there is to see in the cluster's own network, it sees from there.
const (
	boxArgument = "in-a-pod"
	boxImage    = "example.com/box:v1"
	tokenFile   = "/var/run/secrets/kubernetes.io/serviceaccount/token"
)

// box waits to be told to end, or, with a URL, prints the answer to a GET with the pod's own token, after its status; with
// scrapeArgument and a question, what scrape does.
func box(args []string) {
	if len(args) == 0 {
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		<-terminated
		os.Exit(0)
	}
	ask := fetch
	if len(args) > 1 && args[0] == scrapeArgument {
		ask, args = scrape, args[1:]
	}
	if err := ask(os.Stdout, args[0]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func fetch(w io.Writer, url string) error {
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	// The manager signs the certificate of its metrics itself; nobody is told of it.
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	fmt.Fprintln(w, response.StatusCode)
	_, err = io.Copy(w, response.Body)
	return err
}

// startBox runs a pod from which answer asks, with the rights of an account of its namespace.
func startBox(t *testing.T, ns, account string) *corev1.Pod {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	must(t, world.LoadImage(t.Context(), boxImage, self))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "box"},
		Spec: corev1.PodSpec{
			ServiceAccountName:            account,
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers:                    []corev1.Container{{Name: "box", Image: boxImage, Command: []string{"/box"}, Args: []string{boxArgument}}},
		},
	}
	eventually(t, "make a pod", func() error { return admin.Create(t.Context(), pod) })
	eventually(t, "the pod runs", func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("its phase is %s", pod.Status.Phase)
		}
		return nil
	})
	return pod
}

// answer is the status and the body that a GET from the pod of startBox gets.
func answer(t *testing.T, pod *corev1.Pod, url string) (status, body string, err error) {
	t.Helper()
	out, err := inside(t, pod, url)
	status, body, _ = strings.Cut(out, "\n")
	return status, body, err
}

// inside is what box, with these arguments, prints in the pod of startBox.
func inside(t *testing.T, pod *corev1.Pod, args ...string) (string, error) {
	t.Helper()
	c, err := kubernetes.NewForConfig(world.Config())
	must(t, err)
	target := c.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "box", Command: append([]string{"/box", boxArgument}, args...), Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewSPDYExecutor(world.Config(), http.MethodPost, target)
	must(t, err)
	var out, errOut bytes.Buffer
	if err := executor.StreamWithContext(context.Background(), remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut}); err != nil {
		return "", fmt.Errorf("%w: %s", err, errOut.String())
	}
	return out.String(), nil
}
