package main

// unshare386 is the system call unshare by the interface of i386, which a filter of system calls may have forgotten.
func unshare386(flags uint32) int32
