// redis-server stands in for Redis in tests: it speaks enough of its protocol for clients that set and get keys and for
// backups, and keeps the keys in a file, so that one can see whether they outlive the process.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// maxArgument bounds the size of one argument of a command, in bytes.
const maxArgument = 1 << 20

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: redis-server FILE, which is redis.conf")
	}
	conf, err := directives(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	s, err := open(filepath.Join(conf["dir"], "appendonly.aof"))
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", ":"+conf["port"])
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-ended
		listener.Close()
	}()
	log.Printf("ready to accept connections on port %s with %d keys", conf["port"], len(s.keys))
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		go s.serve(conn)
	}
}

// directives reads redis.conf.
func directives(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	conf := map[string]string{"dir": ".", "port": "6379"}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			conf[key] = value
		}
	}
	return conf, nil
}

type server struct {
	mu   sync.Mutex
	file *os.File // every write, as the command that made it
	keys map[string]string
}

// open reads the keys that file holds, and returns a server that goes on with it.
func open(file string) (*server, error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	s := &server{keys: map[string]string{}}
	for r := bufio.NewReader(f); ; {
		command, err := read(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		s.do(command)
	}
	s.file = f
	return s, nil
}

func (s *server) serve(conn net.Conn) {
	defer conn.Close()
	for r := bufio.NewReader(conn); ; {
		command, err := read(r)
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, s.do(command)); err != nil {
			return
		}
	}
}

// do runs a command and returns the reply as it is sent.
func (s *server) do(command []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, args := strings.ToUpper(command[0]), command[1:]
	switch {
	case name == "PING":
		return "+PONG\r\n"
	case name == "SAVE":
		if err := s.file.Sync(); err != nil {
			return "-ERR " + err.Error() + "\r\n"
		}
		return "+OK\r\n"
	case name == "DBSIZE":
		return fmt.Sprintf(":%d\r\n", len(s.keys))
	case name == "SCAN":
		var names []string
		for key := range s.keys {
			names = append(names, key)
		}
		return "*2\r\n" + bulk("0") + array(names)
	case name == "PTTL":
		return ":-1\r\n"
	case (name == "GET" || name == "DUMP") && len(args) == 1:
		value, ok := s.keys[args[0]]
		if !ok {
			return "$-1\r\n"
		}
		return bulk(value)
	case name == "SET" && len(args) == 2:
		return s.set(args[0], args[1])
	case name == "RESTORE" && len(args) >= 3:
		return s.set(args[0], args[2])
	}
	return "-ERR unknown command or wrong number of arguments: " + name + "\r\n"
}

// set stores a key, in the file first unless it is from there.
func (s *server) set(key, value string) string {
	if s.file != nil {
		if _, err := io.WriteString(s.file, array([]string{"SET", key, value})); err != nil {
			return "-ERR " + err.Error() + "\r\n"
		}
	}
	s.keys[key] = value
	return "+OK\r\n"
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func array(list []string) string {
	out := fmt.Sprintf("*%d\r\n", len(list))
	for _, text := range list {
		out += bulk(text)
	}
	return out
}

// read reads a command: an array of bulk strings, or a line of words.
func read(r *bufio.Reader) ([]string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(line, "*") {
		if words := strings.Fields(line); len(words) > 0 {
			return words, nil
		}
		return nil, errors.New("an empty command")
	}
	n, err := strconv.Atoi(strings.TrimSpace(line[1:]))
	if err != nil || n < 1 || n > 64 {
		return nil, fmt.Errorf("%q is no command", line)
	}
	var command []string
	for range n {
		length, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(length, "$")))
		if err != nil || size < 0 || size > maxArgument {
			return nil, fmt.Errorf("%q is no size of an argument", length)
		}
		data := make([]byte, size+2)
		if _, err := io.ReadFull(r, data); err != nil {
			return nil, err
		}
		command = append(command, string(data[:size]))
	}
	return command, nil
}
