package relay

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
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

// answering serves each caller by f until the test ends, and returns its address.
func answering(t *testing.T, f func(*net.TCPConn)) string {
	l := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f(c.(*net.TCPConn))
		}
	}()
	return l.Addr().String()
}

// relayed is an address at which callers are passed on to targets, which take turns; to "" where there is nobody.
func relayed(t *testing.T, places *semaphore.Weighted, targets ...string) string {
	l := listen(t)
	next := 0
	go Serve(l, places, func(net.Addr) (string, error) {
		to := targets[next%len(targets)]
		if next++; to == "" {
			return "", errors.New("there is nobody")
		}
		return to, nil
	})
	return l.Addr().String()
}

func TestServe(t *testing.T) {
	gone := listen(t)
	_ = gone.Close()
	echo := answering(t, func(c *net.TCPConn) {
		said, _ := io.ReadAll(c)
		_, _ = io.WriteString(c, "you said "+string(said))
		_ = c.Close()
	})
	broken := answering(t, func(c *net.TCPConn) {
		_, _ = io.ReadAll(c)
		_, _ = io.WriteString(c, "half of")
		time.Sleep(50 * time.Millisecond) // so that it is read before the connection breaks
		_ = c.SetLinger(0)
		_ = c.Close()
	})
	for what, test := range map[string]struct {
		targets []string
		answer  string
		breaks  bool
	}{
		"who answers when all was said is heard":   {[]string{echo}, "you said a", false},
		"who breaks off is seen to":                {[]string{broken}, "half of", true},
		"there is nobody":                          {[]string{""}, "", true},
		"who refuses is seen to, if others do not": {[]string{gone.Addr().String(), echo}, "", true},
	} {
		t.Run(what, func(t *testing.T) {
			got, err := call(relayed(t, nil, test.targets...), "a")
			if broken := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE); got != test.answer || broken != test.breaks || err != nil && !broken {
				t.Errorf("it answers %q, %v", got, err)
			}
		})
	}
}

// TestGoesOnReading: who has said all may still be told more.
func TestGoesOnReading(t *testing.T) {
	heard := make(chan string, 1)
	c, err := net.Dial("tcp", relayed(t, nil, answering(t, func(c *net.TCPConn) {
		_ = c.CloseWrite()
		said, _ := io.ReadAll(c)
		heard <- string(said)
		_ = c.Close()
	})))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.ReadAll(c); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := io.WriteString(c, "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = c.Close()
	if said := <-heard; said != "aaa" {
		t.Errorf("it heard %q", said)
	}
}

// TestPlaces: who finds no place is reset, and there is one again when another goes.
func TestPlaces(t *testing.T) {
	address := relayed(t, semaphore.NewWeighted(1), answering(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c); _ = c.Close() }))
	first, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := call(address, "b"); err == nil {
		t.Error("a second one finds a place")
	}
	_ = first.Close()
	for range 100 {
		if got, err := call(address, "c"); err == nil && got == "c" {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the place is not given back")
}

// TestServeEnds: it ends with its listener.
func TestServeEnds(t *testing.T) {
	l := listen(t)
	served := make(chan bool)
	go func() {
		Serve(l, nil, nil)
		close(served)
	}()
	_ = l.Close()
	<-served
}
