package ephemeral

// Config is the [workspace] table of a policy: what the agent gets of the host's files, and how. The zero value is an
// overlay of the workspace directory that dies with the run.
type Config struct {
	// Mode says how the agent gets the workspace; "" is Overlay.
	Mode Mode `toml:"mode"`
	// AllowedHostRoots are the directories that mounts must resolve into, links followed. Relative ones start at the
	// workspace. nil: the workspace itself; empty but not nil: nothing, so that every mount is refused.
	AllowedHostRoots []string `toml:"allowed_host_roots"`
	// Storage says where an overlay keeps what the run writes; "" is Memory.
	Storage Storage `toml:"storage"`
	// Mounts are materialised in order. Without any, the workspace directory is there, whole.
	Mounts []Mount `toml:"mounts"`
}

// Mode says how the agent gets the workspace.
type Mode string

// The modes of a workspace.
const (
	// Overlay shows the host's files and keeps what is written apart from them.
	Overlay Mode = "overlay"
	// Copy gives the agent files of its own.
	Copy Mode = "copy"
	// Bind lets the agent write the host's files.
	Bind Mode = "bind"
	// None gives the agent an empty directory.
	None Mode = "none"
)

// Storage says where an overlay keeps what the run writes.
type Storage string

// The storages of an overlay.
const (
	// Memory is a tmpfs that dies with the run.
	Memory Storage = "memory"
	// Disk is the run directory.
	Disk Storage = "disk"
)

// Mount is one [[workspace.mounts]] entry: a file or directory of the host and its place in the workspace.
type Mount struct {
	// HostPath must resolve inside Config.AllowedHostRoots; relative to the workspace.
	HostPath string `toml:"host_path"`
	// MountPath is relative to the workspace as the agent sees it; "" is the base name of HostPath. Two mounts at one
	// place are an error.
	MountPath string `toml:"mount_path"`
	// IncludeGlob are doublestar patterns on the path below HostPath; nil takes every file.
	IncludeGlob []string `toml:"include_glob"`
	// ExcludeGlob wins over IncludeGlob. Any pattern makes the mount a copy, whatever the mode.
	ExcludeGlob []string `toml:"exclude_glob"`
	// MaxBytes bounds what is copied, and makes the mount a copy. nil: no bound; 0: nothing fits.
	MaxBytes *Size `toml:"max_bytes"`
	// FollowSymlinks copies what links point at, inside the allowed roots, in place of the links.
	FollowSymlinks bool `toml:"follow_symlinks"`
}
