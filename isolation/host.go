package isolation

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Host is what a plan has to know of the machine: facts, gathered once by [ProbeHost] and then only read, so that the
// same facts give the same plan anywhere.
type Host struct {
	OS         string            // as runtime.GOOS
	UID, GID   int               // of the caller
	Root       bool              // the caller is root of the whole system, not of a user namespace
	Home       string            // the caller's home directory, resolved; "" when it has none
	Env        []string          // the caller's environment, which the filter of the policy works on
	Bubblewrap string            // absolute path; "" when it is missing
	Self       Object            // the running program
	Links      []Link            // top-level links of a merged /usr, such as bin → usr/bin
	Roots      []string          // top-level directories with programs where /usr is not merged
	Etc        []Entry           // names below /etc that programs need and that exist here
	ModelCA    string            // PEM of the certificate authority that speaks for the model API inside; "": none
	Paths      map[string]Object // what the policy's own paths are, by the spelling in [Config] or by role
}

// Object is something in the host's file tree, with all links resolved. Dev and Ino are its identity: what is mounted
// later must be the very object that was judged.
type Object struct {
	Path     string
	Dir      bool
	UID, GID int
	Dev, Ino uint64
}

// Entry is a name and whether it is a directory.
type Entry struct {
	Name string
	Dir  bool
}

// Link is a symbolic link below the root.
type Link struct{ Name, Target string }

// ErrNotFound says that a path of the plan does not exist.
var ErrNotFound = errors.New("does not exist")

// etcNames are what programs read in /etc and what holds no secret. Everything else there stays outside.
var etcNames = []string{
	"alternatives", "ca-certificates", "ca-certificates.conf", "fonts", "inputrc", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
	"mime.types", "pki/ca-trust/extracted", "pki/tls/certs", "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "terminfo",
}

// rootNames are the top-level names that are links into /usr on a merged system and directories elsewhere.
var rootNames = []string{"bin", "lib", "lib32", "lib64", "libx32", "sbin"}

// Lookup resolves path on this host.
func Lookup(path string) (Object, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if errors.Is(err, os.ErrNotExist) {
		return Object{}, fmt.Errorf("%s: %w", path, ErrNotFound)
	}
	if err != nil {
		return Object{}, err
	}
	resolved, err = filepath.Abs(resolved)
	if err != nil {
		return Object{}, err
	}
	info, err := os.Lstat(resolved)
	if err != nil {
		return Object{}, err
	}
	o := Object{Path: resolved, Dir: info.IsDir()}
	o.identify(info)
	return o, nil
}

// probeRoot fills in what the file tree of the host looks like near its root.
func (h *Host) probeRoot() {
	names := slices.Clone(etcNames)
	for _, name := range rootNames {
		target, err := os.Readlink("/" + name)
		if err == nil {
			h.Links = append(h.Links, Link{name, strings.TrimPrefix(target, "/")})
		} else if info, err := os.Stat("/" + name); err == nil && info.IsDir() {
			h.Roots = append(h.Roots, name)
		}
	}
	java, _ := filepath.Glob("/etc/java-*-openjdk") // no error but for a bad pattern
	for _, path := range java {
		names = append(names, strings.TrimPrefix(path, "/etc/"))
	}
	for _, name := range names {
		if info, err := os.Stat("/etc/" + name); err == nil {
			h.Etc = append(h.Etc, Entry{name, info.IsDir()})
		}
	}
}

// findBubblewrap looks in PATH and then where distributions put it.
func findBubblewrap() string {
	path := cmp.Or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin")
	for _, dir := range append(filepath.SplitList(path), "/usr/bin", "/usr/local/bin") {
		file := filepath.Join(dir, "bwrap")
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && filepath.IsAbs(file) {
			return file
		}
	}
	return ""
}
