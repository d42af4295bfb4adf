//go:build linux

// Command attacker runs in pods and tries to leave them. What it tries has no effect where it succeeds: it asks for what an
// attack needs, and goes no further.
package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// report is what an attacker found.
type report struct {
	Facts map[string]string // who it is, as the kernel says
	Harm  []string          // the attacks that succeeded
}

// Variables that name what of the machine no container may reach: files, separated by colons, and sockets, as network=address,
// separated by commas.
const (
	pathsVariable   = "ATTACK_PATHS"
	socketsVariable = "ATTACK_SOCKETS"
)

func main() {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "link": // as an init container
		check(os.Symlink(os.Args[2], os.Args[3]))
	case len(os.Args) == 3 && os.Args[1] == "write":
		data, err := json.Marshal(attack())
		check(err)
		check(os.WriteFile(os.Args[2]+".part", data, 0o600))
		check(os.Rename(os.Args[2]+".part", os.Args[2]))
	case len(os.Args) == 3 && os.Args[1] == "await":
		for {
			if data, err := os.ReadFile(os.Args[2]); err == nil {
				fmt.Printf("%s\n", data)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	case len(os.Args) == 2 && os.Args[1] == "serve":
		end := make(chan os.Signal, 1)
		signal.Notify(end, syscall.SIGTERM)
		check(json.NewEncoder(os.Stdout).Encode(attack()))
		<-end
	case len(os.Args) == 2 && os.Args[1] == "hunt":
		hunt()
	case len(os.Args) == 2 && os.Args[1] == "i386":
		if unshare386(unix.CLONE_NEWUSER) != 0 {
			os.Exit(1)
		}
	case len(os.Args) == 3 && os.Args[1] == "breed":
		breed(os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == "stay":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		time.Sleep(time.Hour) // nothing else ends it
	default:
		check(json.NewEncoder(os.Stdout).Encode(attack()))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func attack() report {
	runtime.LockOSThread()
	r := report{Facts: facts()}
	for _, name := range slices.Sorted(maps.Keys(attacks)) {
		if did := attacks[name](); did != "" {
			r.Harm = append(r.Harm, name+": "+did)
		}
	}
	return r
}

func facts() map[string]string {
	found := map[string]string{}
	status, err := os.ReadFile("/proc/self/status")
	check(err)
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters":
			found[name] = strings.TrimSpace(value)
		}
	}
	spaces, err := filepath.Glob("/proc/self/ns/*")
	check(err)
	for _, space := range spaces {
		if target, err := os.Readlink(space); err == nil {
			found[space] = target
		}
	}
	var root unix.Stat_t
	check(unix.Stat("/", &root))
	found["/"] = fmt.Sprint(root.Dev, root.Ino)
	found["directory"], err = os.Getwd()
	check(err)
	return found
}

// attacks return what they came to, "" for nothing.
var attacks = map[string]func() string{
	"read the machine's files": func() string {
		for path := range strings.SplitSeq(os.Getenv(pathsVariable), ":") {
			for _, before := range []string{"", "/proc/1/root", "/proc/self/root", "/proc/self/cwd/../../../../../../../..", "/proc/1/cwd/../../../../.."} {
				if data, err := os.ReadFile(before + path); err == nil && path != "" {
					return fmt.Sprintf("%s%s holds %d bytes", before, path, len(data))
				}
			}
		}
		return ""
	},
	"set the machine's sysctls": opens(unix.O_WRONLY, "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
		"/proc/sys/vm/drop_caches", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/fs/binfmt_misc/register", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/proc/pressure/cpu"),
	"read the kernel's memory and keys": func() string {
		for _, path := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/kpageflags", "/proc/slabinfo", "/proc/vmallocinfo", "/proc/pagetypeinfo"} {
			if data, err := readSome(path); err == nil && len(data) > 0 {
				return path
			}
		}
		return ""
	},
	"see sysfs and cgroups": func() string {
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		check(err)
		for line := range strings.Lines(string(mounts)) {
			if _, kind, _ := strings.Cut(line, " - "); strings.HasPrefix(kind, "sysfs ") || strings.HasPrefix(kind, "cgroup") || strings.HasPrefix(kind, "securityfs ") {
				return line
			}
		}
		if entries, _ := os.ReadDir("/sys"); len(entries) > 0 {
			return "/sys has entries"
		}
		return ""
	},
	"change the machine's devices":        changeDevices,
	"lead the node away":                  leadNodeAway,
	"reach the machine's sockets":         reachSockets,
	"use the cluster without credentials": useCluster,
	"use what was left open":              inherited,
	"read what nobody gives it":           standardInput,
	"have the machine's root dump it": func() string {
		var limit unix.Rlimit
		check(unix.Getrlimit(unix.RLIMIT_CORE, &limit))
		if limit.Cur != 1 || limit.Max != 1 {
			return fmt.Sprintf("a core dump may have %d bytes", limit.Max)
		}
		return ""
	},
	"outlast others when memory runs out": func() string {
		score, err := os.ReadFile("/proc/self/oom_score_adj")
		check(err)
		if strings.TrimSpace(string(score)) != "1000" { // which who wants to may lower
			return "its score was " + string(score)
		}
		return ""
	},
	"user namespace by the calls of i386": func() string {
		if exec.Command("/proc/self/exe", "i386").Run() != nil {
			return ""
		}
		return "a process is in one"
	},
	"look into other processes": func() string {
		paths, err := filepath.Glob("/proc/[0-9]*/environ")
		check(err)
		for _, path := range paths {
			if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), "OLMKIT_CACHE") {
				return path
			}
		}
		return ""
	},
	"mount":          calls(func() error { return unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "") }),
	"bind":           calls(func() error { return unix.Mount("/proc", "/tmp", "", unix.MS_BIND|unix.MS_REC, "") }),
	"remount":        calls(func() error { return unix.Mount("", "/proc/sys", "", unix.MS_BIND|unix.MS_REMOUNT, "") }),
	"unmount":        calls(func() error { return unix.Unmount("/proc/sys", unix.MNT_DETACH) }),
	"change root":    calls(func() error { return unix.Chroot("/tmp") }),
	"pivot root":     calls(func() error { return unix.PivotRoot("/", "/") }),
	"user namespace": calls(func() error { return unix.Unshare(unix.CLONE_NEWUSER) }),
	"mounts":         calls(func() error { return unix.Unshare(unix.CLONE_NEWNS) }),
	"cloned user namespace": func() string {
		process, err := os.StartProcess("/proc/self/exe", []string{"attacker", "link", "/nowhere", "/nowhere/link"}, &os.ProcAttr{
			Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER},
		})
		if err != nil {
			return ""
		}
		_, _ = process.Wait()
		return "a process is in one"
	},
	"enter a namespace": calls(func() error {
		f, err := os.Open("/proc/1/ns/net")
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.Setns(int(f.Fd()), 0)
	}),
	"make a device": func() string {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("device-%d", os.Getpid()))
		defer func() { _ = os.Remove(path) }()
		if err := unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0))); err != nil {
			return ""
		}
		return "a block device"
	},
	"capabilities": func() string {
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
			if have := facts()[set]; strings.Trim(have, "0") != "" {
				return set + " " + have
			}
		}
		return ""
	},
	"new privileges": func() string {
		if have := facts(); have["NoNewPrivs"] != "1" || have["Seccomp"] != "2" {
			return fmt.Sprintf("NoNewPrivs %s, Seccomp %s", have["NoNewPrivs"], have["Seccomp"])
		}
		return ""
	},
	"become root":         unlessRoot(func() error { return unix.Setreuid(-1, 0) }),
	"raw network":         calls(func() error { return closeNew(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)) }),
	"sockets to the host": calls(func() error { return closeNew(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)) }),
	"sockets to the host, by a number whose lower half is meant": calls(func() error {
		fd, _, errno := unix.Syscall(unix.SYS_SOCKET, 1<<32|unix.AF_VSOCK, unix.SOCK_STREAM, 0)
		if errno != 0 {
			return errno
		}
		return unix.Close(int(fd))
	}),
	"keyrings":              calls(func() error { _, err := unix.KeyctlJoinSessionKeyring(""); return err }),
	"io_uring":              calls(func() error { return number(unix.SYS_IO_URING_SETUP, 1) }, unix.EFAULT),
	"bpf":                   calls(func() error { return number(unix.SYS_BPF, 0) }, unix.EINVAL, unix.EFAULT),
	"userfaultfd":           calls(func() error { return number(unix.SYS_USERFAULTFD, 1) }),
	"performance events":    calls(func() error { return number(unix.SYS_PERF_EVENT_OPEN, 0) }, unix.EFAULT),
	"kernel modules":        calls(func() error { return number(unix.SYS_INIT_MODULE, 0) }, unix.EFAULT),
	"file system interface": calls(func() error { name := []byte("proc\x00"); return number(unix.SYS_FSOPEN, address(name)) }),
	"files by handle": calls(func() error {
		root, err := os.Open("/")
		if err != nil {
			return err
		}
		defer root.Close()
		return closeNew(unix.OpenByHandleAt(int(root.Fd()), unix.NewFileHandle(1, []byte{2, 0, 0, 0, 0, 0, 0, 0}), unix.O_RDONLY))
	}, unix.ESTALE),
	"kernel log": calls(func() error { _, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, make([]byte, 64)); return err }),
	"change what it runs from": func() string { // its program is a file of the machine
		for _, path := range []string{"/proc/self/exe", "/proc/1/exe"} {
			f, err := os.Open(path)
			if err != nil {
				continue
			}
			defer f.Close()
			info, err := f.Stat()
			check(err)
			if f.Chmod(info.Mode()) == nil {
				if target, _ := os.Readlink(path); !strings.HasPrefix(target, "/usr/") { // the container's copy of the image
					return path + ", which is " + target
				}
			}
		}
		return ""
	},
}

// tokenDir is where every container has a volume that the node writes while the container runs.
const tokenDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// leadNodeAway reports whether the container may put a link where the node would follow it.
func leadNodeAway() string {
	for _, dir := range []string{tokenDir, "/config"} {
		link := filepath.Join(dir, "..attack")
		if err := os.Symlink("/", link); err == nil {
			_ = os.Remove(link)
			return dir + " can be changed"
		}
	}
	return ""
}

// reachSockets dials the machine's sockets.
func reachSockets() string {
	reached := make(chan string)
	all := strings.FieldsFunc(os.Getenv(socketsVariable), func(r rune) bool { return r == ',' })
	for _, socket := range all {
		go func() {
			network, address, _ := strings.Cut(socket, "=")
			conn, err := net.DialTimeout(network, address, time.Second)
			if err != nil {
				reached <- ""
				return
			}
			_ = conn.Close()
			reached <- socket
		}()
	}
	var did []string
	for range all {
		if socket := <-reached; socket != "" {
			did = append(did, socket)
		}
	}
	return strings.Join(did, " ")
}

// useCluster asks the cluster's components without credentials for what they tell nobody.
func useCluster() string {
	host := os.Getenv("KUBERNETES_SERVICE_HOST")
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	api := "https://" + net.JoinHostPort(host, os.Getenv("KUBERNETES_SERVICE_PORT"))
	for _, url := range []string{
		api + "/api/v1/secrets", api + "/api/v1/namespaces/default/pods", api + "/metrics", api + "/debug/pprof/", api + "/logs/",
		"https://" + host + ":10250/pods", "https://" + host + ":10250/runningpods/", "http://" + host + ":10255/pods",
		"http://" + host + ":2379/version", "https://" + host + ":2379/version", "http://" + host + ":2380/members",
		"https://" + host + ":10257/metrics", "https://" + host + ":10259/metrics",
	} {
		answer, err := client.Get(url)
		if err != nil {
			continue
		}
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return url
		}
	}
	return ""
}

// inherited returns what it was left open to that nobody gave it.
func inherited() string {
	entries, err := os.ReadDir("/proc/self/fd")
	check(err)
	for _, entry := range entries {
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		harmless := strings.HasPrefix(target, "anon_inode:") || strings.HasPrefix(target, "/proc/") || target == os.DevNull
		if number, _ := strconv.Atoi(entry.Name()); err == nil && number > 2 && !harmless {
			return entry.Name() + " is " + target
		}
	}
	return ""
}

// standardInput returns what its standard input is, if that is neither /dev/null nor what somebody who runs a command may give it.
func standardInput() string {
	var info unix.Stat_t
	check(unix.Fstat(0, &info))
	kind := info.Mode & unix.S_IFMT
	if kind == unix.S_IFIFO || kind == unix.S_IFSOCK || kind == unix.S_IFCHR && info.Rdev == unix.Mkdev(1, 3) {
		return ""
	}
	target, _ := os.Readlink("/proc/self/fd/0")
	return "it is " + target
}

// breed starts processes that call themselves name and that no signal but SIGKILL ends, in sessions of their own.
func breed(name string) {
	for range 20 {
		check((&exec.Cmd{Path: "/proc/self/exe", Args: []string{"attacker", "stay", name}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}).Start())
	}
	fmt.Println("bred")
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	<-end
}

// hunt looks for a process that runs another program than this, a file of the machine, and tries to change that file's mode.
func hunt() {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		paths, err := filepath.Glob("/proc/[0-9]*/exe")
		check(err)
		for _, path := range paths {
			if target, err := os.Readlink(path); err != nil || filepath.Base(target) == "attacker" {
				continue
			}
			f, err := os.Open(path)
			if err != nil {
				continue
			}
			info, err := f.Stat()
			check(err)
			fmt.Println("chmod:", f.Chmod(info.Mode()))
			return
		}
	}
	fmt.Println("none is found")
}

// changeDevices sets the mode of devices, and of what else of the machine hides files, to what it is.
func changeDevices() string {
	paths, err := filepath.Glob("/dev/*")
	check(err)
	for _, path := range append(paths, "/proc/kcore", "/proc/keys", "/proc/timer_list") {
		var is unix.Stat_t
		if unix.Stat(path, &is) == nil && is.Mode&unix.S_IFMT == unix.S_IFCHR && unix.Chmod(path, is.Mode&0o7777) == nil {
			return path + " can be changed"
		}
	}
	for stream := range 3 {
		var is unix.Stat_t
		if unix.Fstat(stream, &is) == nil && is.Mode&unix.S_IFMT == unix.S_IFCHR && unix.Fchmod(stream, is.Mode&0o7777) == nil {
			return fmt.Sprintf("stream %d can be changed", stream)
		}
	}
	return ""
}

func readSome(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, 16)
	n, err := f.Read(data)
	return data[:n], err
}

// opens is an attack that opens any of paths.
func opens(flags int, paths ...string) func() string {
	return func() string {
		for _, path := range paths {
			if fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0); err == nil {
				_ = unix.Close(fd)
				return path + " can be opened"
			}
		}
		return ""
	}
}

// calls is an attack by a system call, which has succeeded also where it fails by one of reached: the kernel then has looked
// at its arguments.
func calls(f func() error, reached ...error) func() string {
	return func() string {
		if err := f(); err == nil || slices.Contains(reached, err) {
			return fmt.Sprintf("the call answers %v", err)
		}
		return ""
	}
}

func unlessRoot(f func() error) func() string {
	if os.Getuid() == 0 {
		return func() string { return "" }
	}
	return calls(f)
}

func closeNew(fd int, err error) error {
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func number(trap, first uintptr) error {
	if _, _, errno := unix.Syscall6(trap, first, 0, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
