// Package redis is a client for the few commands of Redis that a backup takes.
package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// maxReply bounds the size of one reply, in bytes.
const maxReply = 16 << 20

// Conn is a connection to a server.
type Conn struct {
	conn   net.Conn
	reader *bufio.Reader
}

// Key is a key with its value as DUMP serializes it.
type Key struct {
	Name  []byte        `json:"name"`
	Value []byte        `json:"value"`
	TTL   time.Duration `json:"ttl,omitempty"` // 0 if it does not expire
}

// Dial connects to the server at address. All that is done with the connection has to end with ctx, or in 10 seconds.
func Dial(ctx context.Context, address string) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &Conn{conn: conn, reader: bufio.NewReader(conn)}, nil
}

// Close closes the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// Do sends a command and returns the reply: a string, []byte, int64, []any, or nil.
func (c *Conn) Do(args ...string) (any, error) {
	var command strings.Builder
	fmt.Fprintf(&command, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&command, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := io.WriteString(c.conn, command.String()); err != nil {
		return nil, fmt.Errorf("send %s: %w", args[0], err)
	}
	reply, err := c.read(0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", args[0], err)
	}
	return reply, nil
}

func (c *Conn) read(depth int) (any, error) {
	line, err := c.reader.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" || depth > 4 {
		return nil, errors.New("the reply is no RESP")
	}
	kind, rest := line[0], line[1:]
	if kind == '+' {
		return rest, nil
	}
	if kind == '-' {
		return nil, errors.New(rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the reply is no RESP: %w", err)
	}
	switch {
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case n > maxReply:
		return nil, fmt.Errorf("the reply has %d bytes, at most %d are read", n, maxReply)
	case kind == '$':
		data := make([]byte, n+2)
		if _, err := io.ReadFull(c.reader, data); err != nil {
			return nil, err
		}
		return data[:n], nil
	case kind == '*':
		var list []any
		for range n {
			element, err := c.read(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, element)
		}
		return list, nil
	}
	return nil, fmt.Errorf("the reply is no RESP: it begins with %q", kind)
}

// Dump returns all keys of the server. It fails when their names and values take more than limit bytes.
func (c *Conn) Dump(limit int) ([]Key, error) {
	var keys []Key
	size := 0
	for cursor := "0"; ; {
		reply, err := c.Do("SCAN", cursor)
		if err != nil {
			return nil, err
		}
		page, _ := reply.([]any)
		if len(page) != 2 {
			return nil, fmt.Errorf("SCAN: the reply is %v", reply)
		}
		names, _ := page[1].([]any)
		for _, name := range names {
			key, err := c.dump(name)
			if err != nil {
				return nil, err
			}
			if key.Value == nil {
				continue // it expired meanwhile
			}
			if size += len(key.Name) + len(key.Value); size > limit {
				return nil, fmt.Errorf("the keys take more than %d bytes", limit)
			}
			keys = append(keys, key)
		}
		if cursor = fmt.Sprintf("%s", page[0]); cursor == "0" {
			return keys, nil
		}
	}
}

func (c *Conn) dump(name any) (Key, error) {
	key := Key{}
	key.Name, _ = name.([]byte)
	value, err := c.Do("DUMP", string(key.Name))
	if err != nil {
		return key, err
	}
	key.Value, _ = value.([]byte)
	ttl, err := c.Do("PTTL", string(key.Name))
	if err != nil {
		return key, err
	}
	if ms, _ := ttl.(int64); ms > 0 {
		key.TTL = time.Duration(ms) * time.Millisecond
	}
	return key, nil
}

// Restore writes keys in the place of those of their names.
func (c *Conn) Restore(keys []Key) error {
	for _, key := range keys {
		ttl := strconv.FormatInt(key.TTL.Milliseconds(), 10)
		if _, err := c.Do("RESTORE", string(key.Name), ttl, string(key.Value), "REPLACE"); err != nil {
			return fmt.Errorf("restore key %q: %w", key.Name, err)
		}
	}
	return nil
}
