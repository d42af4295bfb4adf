package relay

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// listen listens until the test ends.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// call sends text to an address, says that this is all, and returns what is answered.
func call(address, text string) (string, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return "", err // it can be reset as soon as it is there
	}
	defer c.Close()
	if _, err = io.WriteString(c, text); err == nil {
		err = c.(*net.TCPConn).CloseWrite()
	}
	if err != nil {
		return "", err
	}
	answer, err := io.ReadAll(c)
	return string(answer), err
}

// TestServe: who answers when all was said is heard; where nobody is the caller's connection is reset.
func TestServe(t *testing.T) {
	echo, front := listen(t), listen(t)
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			said, _ := io.ReadAll(c)
			_, _ = io.WriteString(c, "you said "+string(said))
			c.Close()
		}
	}()
	gone := listen(t)
	gone.Close()
	targets := make(chan string, 1)
	served := make(chan bool)
	go func() {
		Serve(front, func() (string, error) {
			if to := <-targets; to != "" {
				return to, nil
			}
			return "", errors.New("there is nobody")
		})
		close(served)
	}()
	targets <- echo.Addr().String()
	if got, err := call(front.Addr().String(), "a"); err != nil || got != "you said a" {
		t.Errorf("it answers %q, %v", got, err)
	}
	for _, nowhere := range []string{"", gone.Addr().String()} {
		targets <- nowhere
		if got, err := call(front.Addr().String(), "a"); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
			t.Errorf("%q answers %q, %v", nowhere, got, err)
		}
	}
	front.Close()
	<-served
}
