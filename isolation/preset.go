package isolation

import "github.com/sandboxrun/sandboxrun/policies"

// Presets returns the names of the built-in policies, sorted. [Inspect] reads any of them, [Load] those that this
// release enforces.
func Presets() []string { return policies.Names() }

// PresetText returns the annotated file of a preset.
func PresetText(name string) ([]byte, error) {
	data, ok := policies.Read(name)
	if !ok {
		return nil, noPreset(name)
	}
	return data, nil
}
