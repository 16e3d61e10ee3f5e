package isolation

import (
	"os"
	"strings"
	"syscall"
)

// ownsSystem reports whether this process is in the first user namespace, where uid 0 is the kernel's; see
// user_namespaces(7). In any other one uid 0 is just a name for somebody.
func ownsSystem() bool {
	data, err := os.ReadFile("/proc/self/uid_map")
	return err != nil || strings.Join(strings.Fields(string(data)), " ") == "0 0 4294967295"
}

func (o *Object) identify(info os.FileInfo) {
	st := info.Sys().(*syscall.Stat_t)
	o.Dev, o.Ino, o.UID, o.GID = st.Dev, st.Ino, int(st.Uid), int(st.Gid)
}
