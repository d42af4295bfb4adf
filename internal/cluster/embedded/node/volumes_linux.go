package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/olmkit/olmkit/internal/cluster/embedded/sandbox"
)

// refreshPeriod is how often volumes made from objects of the API are brought up to date; the kubelet's default is a
// minute, and shorter here so that nothing waits for it.
const refreshPeriod = 5 * time.Second

// file is one file of a volume made from objects of the API.
type file struct {
	data []byte
	mode fs.FileMode
}

// usedVolumes returns the volumes that a container mounts; the kubelet leaves the others alone, so that they may well be
// made from what does not exist (k8s.io/kubernetes v1.36.3, pkg/kubelet/volumemanager/populator).
func (p *pod) usedVolumes() []*corev1.Volume {
	mounted := map[string]bool{}
	p.eachContainer(func(c *corev1.Container) {
		for _, m := range c.VolumeMounts {
			mounted[m.Name] = true
		}
	})
	spec := &p.current().Spec
	var used []*corev1.Volume
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; mounted[v.Name] {
			used = append(used, v)
		}
	}
	return used
}

// mountVolumes makes every volume that the pod uses.
func (p *pod) mountVolumes(ctx context.Context) error {
	if err := p.refuseDevices(); err != nil {
		return err
	}
	for _, v := range p.usedVolumes() {
		if err := p.mountVolume(ctx, v); err != nil {
			return fmt.Errorf("mount volume %s: %w", v.Name, err)
		}
	}
	return nil
}

func (p *pod) mountVolume(ctx context.Context, v *corev1.Volume) error {
	dir := filepath.Join(p.dir, "volumes", v.Name)
	switch {
	case p.claimName(v) != "":
		claimed, err := p.claimedDir(ctx, v)
		if err != nil {
			return err
		}
		dir = claimed
	case v.HostPath != nil: // no container of the pod runs, or it would have been refused
		return nil
	case v.EmptyDir != nil:
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			return err
		}
	default:
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := p.refreshVolume(ctx, v, dir); err != nil {
			return err
		}
	}
	p.volumes[v.Name] = dir
	return nil
}

// refreshVolumes brings the volumes made from objects of the API up to date. What can't be had now stays as it was.
func (p *pod) refreshVolumes(ctx context.Context) {
	for _, v := range p.usedVolumes() {
		dir, mounted := p.volumes[v.Name]
		if mounted && fromAPI(v) {
			_ = p.refreshVolume(ctx, v, dir)
		}
	}
}

func (p *pod) refreshVolume(ctx context.Context, v *corev1.Volume, dir string) error {
	files, err := p.volumeFiles(ctx, v)
	if err != nil {
		return err
	}
	return writeFiles(dir, files)
}

func (p *pod) volumeFiles(ctx context.Context, v *corev1.Volume) (map[string]file, error) {
	files := map[string]file{}
	switch {
	case v.Secret != nil:
		source := v.Secret
		return files, p.addSecret(ctx, files, source.SecretName, source.Items, optional(source.Optional), mode(source.DefaultMode))
	case v.ConfigMap != nil:
		source := v.ConfigMap
		return files, p.addConfigMap(ctx, files, source.Name, source.Items, optional(source.Optional), mode(source.DefaultMode))
	case v.DownwardAPI != nil:
		return files, p.addDownward(files, v.DownwardAPI.Items, mode(v.DownwardAPI.DefaultMode))
	case v.Projected != nil:
		defaultMode := mode(v.Projected.DefaultMode)
		for _, source := range v.Projected.Sources {
			var err error
			switch {
			case source.Secret != nil:
				err = p.addSecret(ctx, files, source.Secret.Name, source.Secret.Items, optional(source.Secret.Optional), defaultMode)
			case source.ConfigMap != nil:
				err = p.addConfigMap(ctx, files, source.ConfigMap.Name, source.ConfigMap.Items, optional(source.ConfigMap.Optional), defaultMode)
			case source.DownwardAPI != nil:
				err = p.addDownward(files, source.DownwardAPI.Items, defaultMode)
			case source.ServiceAccountToken != nil:
				err = p.addToken(ctx, files, source.ServiceAccountToken)
			default:
				err = errors.New("it projects a source of a kind that this node does not know")
			}
			if err != nil {
				return nil, err
			}
		}
		return files, nil
	}
	return nil, errors.New("this node knows the volume types emptyDir, secret, configMap, downwardAPI, projected, persistentVolumeClaim and ephemeral only")
}

func mode(m *int32) fs.FileMode { return fs.FileMode(ptr.Deref(m, 0o644)).Perm() }

func (p *pod) addSecret(ctx context.Context, files map[string]file, name string, items []corev1.KeyToPath, optional bool, mode fs.FileMode) error {
	s, err := p.secret(ctx, name)
	if optional && apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	return addItems(files, s.Data, items, optional, mode, "secret "+name)
}

func (p *pod) addConfigMap(ctx context.Context, files map[string]file, name string, items []corev1.KeyToPath, optional bool, mode fs.FileMode) error {
	m, err := p.configMap(ctx, name)
	if optional && apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	data := map[string][]byte{}
	maps.Copy(data, m.BinaryData)
	for key, value := range m.Data {
		data[key] = []byte(value)
	}
	return addItems(files, data, items, optional, mode, "config map "+name)
}

func addItems(files map[string]file, data map[string][]byte, items []corev1.KeyToPath, optional bool, mode fs.FileMode, what string) error {
	if items == nil {
		for key, value := range data {
			files[key] = file{value, mode}
		}
		return nil
	}
	for _, item := range items {
		value, ok := data[item.Key]
		if !ok && optional {
			continue
		} else if !ok {
			return fmt.Errorf("%s has no key %s", what, item.Key)
		}
		itemMode := mode
		if item.Mode != nil {
			itemMode = fs.FileMode(*item.Mode).Perm()
		}
		files[item.Path] = file{value, itemMode}
	}
	return nil
}

func (p *pod) addDownward(files map[string]file, items []corev1.DownwardAPIVolumeFile, mode fs.FileMode) error {
	for _, item := range items {
		var value string
		var err error
		switch {
		case item.FieldRef != nil:
			value, err = p.field(item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			value = p.resourceField(&corev1.Container{}, item.ResourceFieldRef)
		}
		if err != nil {
			return err
		}
		itemMode := mode
		if item.Mode != nil {
			itemMode = fs.FileMode(*item.Mode).Perm()
		}
		files[item.Path] = file{[]byte(value), itemMode}
	}
	return nil
}

// token is a service account token that was asked for.
type token struct {
	value string
	renew time.Time
}

// addToken adds a token of the pod's service account, bound to the pod, asking for a new one when four fifths of its
// life are over as the kubelet does.
func (p *pod) addToken(ctx context.Context, files map[string]file, source *corev1.ServiceAccountTokenProjection) error {
	key := source.Audience + " " + source.Path
	p.mu.Lock()
	t := p.tokens[key]
	p.mu.Unlock()
	if time.Now().After(t.renew) {
		pod := p.current()
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: source.ExpirationSeconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		}}
		if source.Audience != "" {
			request.Spec.Audiences = []string{source.Audience}
		}
		asked := time.Now()
		answer, err := p.node.config.Client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("token of service account %s: %w", pod.Spec.ServiceAccountName, err)
		}
		t = token{answer.Status.Token, asked.Add(answer.Status.ExpirationTimestamp.Sub(asked) * 4 / 5)}
		p.mu.Lock()
		p.tokens[key] = t
		p.mu.Unlock()
	}
	files[source.Path] = file{[]byte(t.value), 0o644}
	return nil
}

// dataLink is the link through which all files of a volume change at once.
const dataLink = "..data"

// versionPrefix is how the names begin of the directories that dataLink leads to, one after the other.
const versionPrefix = "..version-"

// writeFiles makes dir hold exactly files, changing all of them in one step: each is reached through the link ..data, as
// programs that watch for changed certificates expect of a volume. Whatever is in dir, it stays below dir.
func writeFiles(dir string, files map[string]file) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%q is no volume's directory", dir)
	}
	for path := range files {
		if !filepath.IsLocal(path) || strings.HasPrefix(path, "..") {
			return fmt.Errorf("file %q is not inside the volume", path)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	previous, _ := root.Readlink(dataLink)
	if same(root, previous, files) {
		return nil
	}
	version, top, err := writeVersion(root, files)
	if err != nil {
		return err
	}
	fresh := dataLink + ".new"
	_ = root.Remove(fresh)
	if err := root.Symlink(version, fresh); err != nil {
		return err
	}
	if err := root.Rename(fresh, dataLink); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(top)) {
		if err := root.Symlink(filepath.Join(dataLink, name), name); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := removeOthers(root, top); err != nil {
		return err
	}
	if isVersion(previous) {
		return root.RemoveAll(previous)
	}
	return nil
}

// isVersion reports whether name is that of a directory that writeVersion has made.
func isVersion(name string) bool {
	return strings.HasPrefix(name, versionPrefix) && filepath.Base(name) == name
}

// writeVersion writes files to a new directory of root, and returns its name and what is at its top.
func writeVersion(root *os.Root, files map[string]file) (name string, top map[string]bool, err error) {
	name = versionPrefix + rand.Text()
	if err := root.Mkdir(name, 0o755); err != nil {
		return "", nil, err
	}
	if err := root.Chmod(name, 0o755); err != nil { // whatever the umask is
		return "", nil, err
	}
	version, err := root.OpenRoot(name)
	if err != nil {
		return "", nil, err
	}
	defer version.Close()
	top = map[string]bool{}
	for path, f := range files {
		if err := version.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", nil, err
		}
		if err := version.WriteFile(path, f.data, f.mode); err != nil {
			return "", nil, err
		}
		if err := version.Chmod(path, f.mode); err != nil {
			return "", nil, err
		}
		top[strings.Split(filepath.ToSlash(path), "/")[0]] = true
	}
	return name, top, nil
}

// removeOthers removes what of root is not in top, and not a volume's own.
func removeOthers(root *os.Root, top map[string]bool) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, "..") && !top[name] {
			_ = root.Remove(name)
		}
	}
	return nil
}

// same tells whether version, a directory of root, holds exactly files.
func same(root *os.Root, version string, files map[string]file) bool {
	if !isVersion(version) {
		return false
	}
	known := 0
	differs := errors.New("differs")
	err := fs.WalkDir(root.FS(), version, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return differs
		}
		data, err := root.ReadFile(path)
		if err != nil {
			return err
		}
		if want, ok := files[strings.TrimPrefix(path, version+"/")]; !ok || string(want.data) != string(data) {
			return differs
		}
		known++
		return nil
	})
	return err == nil && known == len(files)
}

// fromAPI reports whether v is made from objects of the API. Containers only read such volumes, as the kubelet has it
// (k8s.io/kubernetes v1.36, pkg/kubelet/kubelet_pods.go, makeMounts): this node changes them while containers run.
func fromAPI(v *corev1.Volume) bool {
	return v.Secret != nil || v.ConfigMap != nil || v.DownwardAPI != nil || v.Projected != nil
}

// mounts returns the volume mounts of a container.
func (p *pod) mounts(c *corev1.Container, vars func(string) (string, bool)) []sandbox.Mount {
	readOnly := map[string]bool{}
	volumes := p.current().Spec.Volumes
	for i := range volumes {
		v := &volumes[i]
		readOnly[v.Name] = fromAPI(v) || v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
	}
	var mounts []sandbox.Mount
	for _, m := range c.VolumeMounts {
		mounts = append(mounts, sandbox.Mount{
			Source: p.volumes[m.Name], SubPath: m.SubPath + expand(m.SubPathExpr, vars), Target: m.MountPath, ReadOnly: m.ReadOnly || readOnly[m.Name],
		})
	}
	slices.SortStableFunc(mounts, func(a, b sandbox.Mount) int { return strings.Compare(a.Target, b.Target) })
	return mounts
}
