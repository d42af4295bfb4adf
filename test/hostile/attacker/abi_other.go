//go:build !amd64

package main

import "golang.org/x/sys/unix"

// unshare386 fails: this machine has no interface of i386.
func unshare386(uint32) int32 { return -int32(unix.ENOSYS) }
