package isolation

import (
	"os"
	"syscall"
)

func (o *Object) identify(info os.FileInfo) {
	st := info.Sys().(*syscall.Stat_t)
	o.Dev, o.Ino, o.UID, o.GID = st.Dev, st.Ino, int(st.Uid), int(st.Gid)
}
