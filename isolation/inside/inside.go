// Package inside is the code that runs on the other side of the wall: in the namespaces of a sandbox, never on the host.
//
// A program that imports this package (every importer of isolation does) becomes one of two stages when it is started
// under one of two names, and never reaches its main function then:
//
//	sandboxrun-zero   stage zero: alone in new user, mount and network namespaces, with capabilities that nothing later
//	                  has. It prepares network and mounts, hands descriptors out and becomes bubblewrap.
//	sandboxrun-init   the first process of the sandbox: PID 1 of the new PID namespace, without any capability. It checks
//	                  that, sets limits, starts the command, forwards signals, reaps, and reports how it ended.
//
// Both get their orders as a value through an inherited descriptor and answer on a socket; there is no environment
// variable, no command line and no file that could be forged from inside. Starting a program under these names by hand
// ends in an error about the missing descriptor.
package inside

// The names under which a program becomes a stage.
const (
	ZeroName = "sandboxrun-zero"
	InitName = "sandboxrun-init"
)

// The descriptors that a stage inherits. Numbers, not names, because they cross bubblewrap.
const (
	ZeroControl = 3 + iota // stage zero's socket to the runner; closed by execve of bubblewrap
	InitControl            // init's socket to the runner; end of file means that the runner is gone
	InitOrders             // a memfd with [Orders]
	CommandIn              // the command's standard streams
	CommandOut
	CommandErr
)

// InitPath is where the running program is found in the sandbox, read-only, to become init.
const InitPath = "/run/" + InitName

// Message is what stages and runner say to each other, one JSON object a packet; descriptors ride along in the order
// that the field which names them says.
type Message struct {
	Orders    bool        `json:"orders,omitempty"`    // runner to stage zero: a memfd with [ZeroOrders] comes with this message, then the mounts that Source.FD counts
	Listeners int         `json:"listeners,omitempty"` // stage zero: so many listening sockets come with this message, …
	Uppers    int         `json:"uppers,omitempty"`    // … then so many upper directories
	Terminal  bool        `json:"terminal,omitempty"`  // init: the master side of the command's terminal comes with this message
	Started   bool        `json:"started,omitempty"`   // init: the command runs
	Exit      *Exit       `json:"exit,omitempty"`      // init: the command ended
	Signal    int         `json:"signal,omitempty"`    // runner to init: send this signal to the command
	Error     *StageError `json:"error,omitempty"`     // a stage could not go on
}

// Exit is how the command ended: by itself with Code, or by Signal when that is not 0.
type Exit struct {
	Code   int `json:"code"`
	Signal int `json:"signal,omitempty"`
}

// StageError says which step of which stage did not work. Errno is 0 where no system call was at fault.
type StageError struct {
	Stage string `json:"stage"`
	Step  string `json:"step"`
	Text  string `json:"text"`
	Errno int    `json:"errno,omitempty"`
}

func (e *StageError) Error() string { return e.Stage + ": " + e.Step + ": " + e.Text }

// ZeroOrders is what stage zero has to prepare.
type ZeroOrders struct {
	ScratchBytes  int64    `json:"scratch_bytes"`  // bytes that home, temporary files and overlays may hold together
	ScratchInodes int64    `json:"scratch_inodes"` // files likewise: a tmpfs limits bytes and files apart
	Tree          []Node   `json:"tree"`           // the file tree of the sandbox but for what is in /proc, in order
	Listen        []int    `json:"listen"`         // TCP ports of the loopback interface to open and hand out
	Bubblewrap    string   `json:"bubblewrap"`
	Args          []string `json:"args"` // of bubblewrap, passed by --args
}

// Stage zero mounts a tmpfs at Scratch, in its own mount namespace, which holds all that the run writes to memory. It
// builds the tree in Root. Bubblewrap mounts over Scratch later.
const (
	Scratch = "/tmp"
	Root    = Scratch + "/root"
)

// Node is one place in the tree of the sandbox.
type Node struct {
	Path     string  `json:"path"` // absolute, inside
	Kind     Kind    `json:"kind"`
	Mode     uint32  `json:"mode,omitempty"` // Dir, File, Empty
	Data     []byte  `json:"data,omitempty"` // File, Sealed: content; Link: target
	Writable bool    `json:"writable,omitempty"`
	Source   *Source `json:"source,omitempty"` // Bind, Device; Overlay: the lower directory; Mask: what it covers
	Upper    *Source `json:"upper,omitempty"`  // Overlay: where upper and work directory are made; nil: in the scratch
}

// Kind says what a [Node] is.
type Kind string

// The kinds of nodes. The root is read-only in the end, and with it what is no mount.
const (
	Dir     Kind = "dir"
	File    Kind = "file"
	Link    Kind = "link"
	Empty   Kind = "empty"   // a mount: a writable directory in the scratch
	Sealed  Kind = "sealed"  // a mount: a read-only file in a place that is writable
	Bind    Kind = "bind"    // a mount: part of the host's tree
	Overlay Kind = "overlay" // a mount: a copy-on-write view of a directory
	Mask    Kind = "mask"    // a mount: something without permissions over what must not be seen

	Device    Kind = "device"    // a mount: a device node of the host
	Terminals Kind = "terminals" // a mount: a devpts of its own
)

// Source is a part of the host's file tree. With FD ≥ 0 it is a detached mount that came with the orders (a root runner
// makes these: stage zero could not reach its files); otherwise stage zero opens Path itself and refuses when that is
// not the object (Dev, Ino) which the runner checked. Ino 0 stands for a public part of the system, which is not checked.
type Source struct {
	Path string `json:"path"`
	FD   int    `json:"fd"`
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	Dir  bool   `json:"dir"`
}

// ErrNoUserXattr is the text of the error that says that a file system cannot hold what an overlay writes.
const ErrNoUserXattr = "the file system of the upper directory has no user extended attributes (tmpfs has them since Linux 6.6)"

// Orders is what init has to start, and the limits under which.
type Orders struct {
	Args     []string `json:"args"`
	Env      []string `json:"env"`
	Dir      string   `json:"dir"`
	UID      int      `json:"uid"`      // that init must have
	Rlimits  []Rlimit `json:"rlimits"`  // soft and hard alike
	Terminal bool     `json:"terminal"` // give the command a terminal of its own instead of the three streams
	Columns  uint16   `json:"columns"`
	Rows     uint16   `json:"rows"`
}

// Rlimit is a resource limit of setrlimit(2).
type Rlimit struct {
	Resource int    `json:"resource"`
	Value    uint64 `json:"value"`
}

// Resources of setrlimit(2) on Linux, here so that plans can be made on every system.
const (
	RlimitCore      = 4
	RlimitProcesses = 6
	RlimitOpenFiles = 7
)
