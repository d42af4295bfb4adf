package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	bpf "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// dropPrivileges takes capabilities and the ways to new ones from whatever this thread executes or forks from now on. The
// goroutine must be locked to the thread, which itself keeps what it needs to become another user.
func dropPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	if err := dropInheritable(); err != nil {
		return fmt.Errorf("drop inheritable capabilities: %w", err)
	}
	return nil
}

// dropInheritable empties the inheritable set, from which a program that root executes would have capabilities whatever the
// bounding set says, and with it the ambient set.
func dropInheritable() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	data[0].Inheritable, data[1].Inheritable = 0, 0
	return unix.Capset(&header, &data[0])
}

// limitCalls leaves this thread, and whatever it executes or forks from now on, the system calls of defaultPolicy.
func limitCalls() error {
	policy, err := defaultPolicy()
	if err != nil {
		return fmt.Errorf("translate the seccomp profile: %w", err)
	}
	if err := bpf.LoadFilter(bpf.Filter{Policy: policy}); err != nil {
		return fmt.Errorf("limit system calls: %w", err)
	}
	return nil
}

// defaultPolicy is what RuntimeDefault means for a container without capabilities, by moby's default profile, which
// containerd's and CRI-O's follow.
var defaultPolicy = sync.OnceValues(func() (bpf.Policy, error) {
	profile, err := seccomp.GetDefaultProfile(&specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}}})
	if err != nil {
		return bpf.Policy{}, err
	}
	machine, err := arch.GetInfo("")
	if err != nil {
		return bpf.Policy{}, err
	}
	allowed := bpf.SyscallGroup{Action: bpf.ActionAllow}
	policy := bpf.Policy{DefaultAction: bpf.ActionErrno}
	whole := map[string]bool{} // allowed whatever their arguments
	for _, rule := range profile.Syscalls {
		for _, name := range rule.Names {
			if _, ok := machine.SyscallNames[name]; !ok || whole[name] {
				continue
			}
			switch {
			case rule.Action == specs.ActErrno && len(rule.Args) == 0:
				policy.Syscalls = append(policy.Syscalls, bpf.SyscallGroup{Names: []string{name}, Action: refusal(rule.ErrnoRet)})
			case rule.Action != specs.ActAllow:
				return bpf.Policy{}, fmt.Errorf("%s has the action %s", name, rule.Action)
			case len(rule.Args) == 0:
				whole[name] = true
				allowed.Names = append(allowed.Names, name)
			default:
				conditions, err := conditionsOf(rule.Args)
				if err != nil {
					return bpf.Policy{}, fmt.Errorf("%s: %w", name, err)
				}
				allowed.NamesWithCondtions = append(allowed.NamesWithCondtions, bpf.NameWithConditions{Name: name, Conditions: conditions})
			}
		}
	}
	allowed.NamesWithCondtions = slices.DeleteFunc(allowed.NamesWithCondtions, func(n bpf.NameWithConditions) bool { return whole[n.Name] })
	policy.Syscalls = append(policy.Syscalls, allowed)
	return policy, nil
})

// refusal is the action that answers a call with the error number, EPERM if there is none.
func refusal(number *uint) bpf.Action {
	if number == nil {
		return bpf.ActionErrno
	}
	return bpf.ActionErrno | bpf.Action(*number)
}

var operations = map[specs.LinuxSeccompOperator]bpf.Operation{
	specs.OpEqualTo: bpf.Equal, specs.OpNotEqual: bpf.NotEqual, specs.OpLessThan: bpf.LessThan, specs.OpLessEqual: bpf.LessOrEqual,
	specs.OpGreaterThan: bpf.GreaterThan, specs.OpGreaterEqual: bpf.GreaterOrEqual,
}

func conditionsOf(args []specs.LinuxSeccompArg) (bpf.ArgumentConditions, error) {
	var conditions bpf.ArgumentConditions
	for _, arg := range args {
		condition := bpf.Condition{Argument: uint32(arg.Index), Value: arg.Value, Operation: operations[arg.Op]}
		if arg.Op == specs.OpMaskedEqual && arg.ValueTwo == 0 {
			condition.Operation = bpf.BitsNotSet
		}
		if condition.Operation == "" {
			return nil, fmt.Errorf("the condition %s on argument %d has no counterpart", arg.Op, arg.Index)
		}
		conditions = append(conditions, condition)
		if arg.Op == specs.OpNotEqual { // the kernel looks at the lower half of an int alone, the filter at all of it
			conditions = append(conditions, bpf.Condition{Argument: uint32(arg.Index), Value: math.MaxUint32 << 32, Operation: bpf.BitsNotSet})
		}
	}
	return conditions, nil
}

// landlockVersion is the first version of Landlock's interface that lets files be moved from one directory to another.
const landlockVersion = 2

// stayBelowRoot is a second wall behind the mount namespace, where the kernel has Landlock: it has this thread, and whatever
// it executes, open files below / only. A file of the machine to which a way was found after all is not below it.
func stayBelowRoot() error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || version < landlockVersion {
		return nil
	}
	rights := uint64(unix.LANDLOCK_ACCESS_FS_REFER)<<1 - 1
	attributes := unix.LandlockRulesetAttr{Handled_access_fs: rights}
	created, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes.Handled_access_fs), 0) //nolint:gosec // as the call wants it
	if errno != 0 {
		return fmt.Errorf("make Landlock's rules: %w", errno)
	}
	rules := os.NewFile(created, "rules")
	defer rules.Close()
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	root := os.NewFile(uintptr(fd), "/")
	defer root.Close()
	below := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(root.Fd())}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, rules.Fd(), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&below)), 0, 0, 0); errno != 0 { //nolint:gosec // as above
		return fmt.Errorf("add Landlock's rule: %w", errno)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules.Fd(), 0, 0); errno != 0 {
		return fmt.Errorf("apply Landlock's rules: %w", errno)
	}
	return nil
}

// User is who a program in a container runs as.
type User struct {
	UID, GID int
	Groups   []int
}

// become makes this process the user u's.
func (u User) become() error {
	if err := u.setGroups(); err != nil {
		return err
	}
	if err := syscall.Setgid(u.GID); err != nil {
		return fmt.Errorf("set the group: %w", err)
	}
	if err := syscall.Setuid(u.UID); err != nil {
		return fmt.Errorf("set the user: %w", err)
	}
	return nil
}

func (u User) setGroups() error {
	if err := syscall.Setgroups(u.Groups); err != nil && !u.unmapped(err) {
		return fmt.Errorf("set groups: %w", err)
	}
	return nil
}

// unmapped tells whether err is no more than that an ordinary user's namespace, which has the user 0 alone, knows no groups.
func (u User) unmapped(err error) bool {
	return errors.Is(err, unix.EPERM) && u.UID == 0 && u.GID == 0 && len(u.Groups) == 0
}

// credential is u for a child of a process that has its groups already.
func (u User) credential() *syscall.Credential {
	return &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID), NoSetGroups: true}
}

// yield has the machine end this process, and what it executes or forks, before others when memory runs out, and make no core dump of them, for which the machine's root may run a program: a
// limit of one byte is what keeps it from that (core(5), fs/coredump.c).
func yield() error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return fmt.Errorf("be ended first when memory runs out: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}); err != nil {
		return fmt.Errorf("forbid core dumps: %w", err)
	}
	return nil
}

// hide keeps programs of the container from looking into this process, which is olmkit itself, until it executes another.
func hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide from the container: %w", err)
	}
	return nil
}
