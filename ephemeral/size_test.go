package ephemeral

import (
	"math"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSizeAcceptsTheCanonicalSpelling(t *testing.T) {
	for text, want := range map[string]Size{
		"0":                   0,
		"1":                   1,
		"100":                 100,
		"1023":                1023,
		"1KiB":                1 << 10,
		"512MiB":              512 << 20,
		"1536MiB":             1536 << 20,
		"4GiB":                4 << 30,
		"2048TiB":             2048 << 40,
		"9223372036854775807": math.MaxInt64,
	} {
		var got Size
		require.NoError(t, got.UnmarshalText([]byte(text)), text)
		assert.Equal(t, want, got)
		assert.Equal(t, text, got.String())
	}
}

func TestSizeNamesTheRightSpelling(t *testing.T) {
	for text, hint := range map[string]string{
		"4GB":                    `is spelt "4GiB"`,
		"4G":                     `is spelt "4GiB"`,
		"4gib":                   `is spelt "4GiB"`,
		"4 GiB":                  `is spelt "4GiB"`,
		" 4GiB":                  `is spelt "4GiB"`,
		"+4GiB":                  `is spelt "4GiB"`,
		"004GiB":                 `is spelt "4GiB"`,
		"1_000":                  `is spelt "1000"`,
		"100B":                   `is spelt "100"`,
		"0GiB":                   `is spelt "0"`,
		"1024MiB":                `is spelt "1GiB"`,
		"1048576":                `is spelt "1MiB"`,
		"":                       "must be a whole number",
		"GiB":                    "must be a whole number",
		"1.5GiB":                 "must be a whole number",
		"4XiB":                   "must be a whole number",
		"0x10":                   "must be a whole number",
		"1-2":                    "must be a whole number",
		"٤GiB":                   "must be a whole number",
		"-1":                     "is negative",
		"-4GiB":                  "is negative",
		"9223372036854775808":    "is too large",
		"8388608TiB":             "is too large",
		"99999999999999999999GB": "is too large",
	} {
		got := Size(7)
		err := got.UnmarshalText([]byte(text))
		require.Error(t, err, text)
		assert.Contains(t, err.Error(), hint, text)
		assert.Equal(t, Size(7), got, "an error leaves the value")
	}
}

func TestSizeInTOML(t *testing.T) {
	var c Config
	_, err := toml.Decode("[[mounts]]\nmax_bytes = \"1MiB\"\n[[mounts]]\nmax_bytes = 0\n[[mounts]]\n", &c)
	require.NoError(t, err)
	require.Len(t, c.Mounts, 3)
	assert.Equal(t, Size(1<<20), *c.Mounts[0].MaxBytes)
	assert.Equal(t, Size(0), *c.Mounts[1].MaxBytes, "0 is a limit")
	assert.Nil(t, c.Mounts[2].MaxBytes, "absent is none")

	for _, value := range []string{"-1", "1.5", "true", `"1MB"`, "[1]"} {
		_, err := toml.Decode("[[mounts]]\nmax_bytes = "+value+"\n", &c)
		assert.ErrorContains(t, err, "size", value)
	}

	var out strings.Builder
	require.NoError(t, toml.NewEncoder(&out).Encode(map[string]Size{"max": 4 << 30}))
	assert.Equal(t, "max = \"4GiB\"\n", out.String())
	_, err = Size(-1).MarshalText()
	assert.Error(t, err)
}

func FuzzSize(f *testing.F) {
	for _, seed := range []string{"0", "4GiB", "4 gb", "-1", "8388608TiB", "1_0", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil {
			assert.NotEmpty(t, err.Error())
			return
		}
		assert.GreaterOrEqual(t, s, Size(0))
		assert.Equal(t, text, s.String())
	})
}
