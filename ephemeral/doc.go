// Package ephemeral knows what a run changed and what remains of it.
//
// A run writes to an overlay: the user's directory is the lower layer and is only read, what the run writes is in the upper.
// Afterwards the difference is a value:
//
//	changes, err := ephemeral.Layers{Lower: host, Upper: upper, Since: started}.Changes()
//	for _, c := range changes.List {
//		fmt.Println(c.Kind, c.Path, c.Risk)
//	}
//	omitted, err := changes.WritePatch(file)                        // for git apply --binary
//	applied, err := changes.Apply(host, ephemeral.ApplyOptions{})   // or into the directory itself
//
// What a run needs on the host's disk is in a directory that is locked while the runner lives:
//
//	ephemeral.Reap("") // what killed runs left
//	run, err := ephemeral.NewRun("")
//	defer run.Close()
//
// Home is the agent's home directory as a value.
//
// What it does not do: it cannot tell whether a change is malicious. Change.Risk names known ways for a file to run code on
// the host later, and Apply leaves the most direct of them alone, but any source file that is built, tested or opened runs
// code too. Owners, times, ACLs and extended attributes are not compared. Nothing here is a sandbox; that is package isolation.
package ephemeral
