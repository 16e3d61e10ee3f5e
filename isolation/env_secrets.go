package isolation

import (
	"slices"
	"strings"
)

// secretWords mark a secret anywhere in a name, with or without separators: DBPASSWORD as well as DB_PASSWORD.
var secretWords = []string{
	"SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "PASSCODE", "CREDENTIAL", "PRIVATE", "APIKEY",
	"API_KEY", "ACCESSKEY",
	"ACCESS_KEY", "KEY_ID", "AUTH", "BEARER", "COOKIE", "WEBHOOK", "SIGNATURE", "CONNECTION_STRING", "CONNSTR",
}

// secretParts mark a secret as a whole part of a name, between separators.
var secretParts = []string{
	"KEY", "KEYS", "PASS", "PW", "PWD", "PAT", "PIN", "OTP", "TOTP", "SAS", "JWT", "CRED", "CREDS", "DSN", "CERT",
	"PEM", "SALT", "SEED", "NONCE", "SESSION",
}

// isSecretName reports whether a variable or key of this name usually holds a secret. Authors are no authorisation:
// AUTHOR is taken out first, AUTHORI… is not.
func isSecretName(name string) bool {
	upper := strings.ToUpper(name)
	upper = strings.ReplaceAll(strings.ReplaceAll(upper, "AUTHORI", "AUTH_I"), "AUTHOR", "_")
	if slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(upper, w) }) {
		return true
	}
	parts := strings.FieldsFunc(upper, func(r rune) bool { return r < 'A' || r > 'Z' })
	return slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(secretParts, p) })
}

// tokenMarks start secrets of known issuers and occur in little else. Case counts.
var tokenMarks = []string{
	"sk-ant-", "sk-proj-", "sk-or-", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", "ghp_", "gho_",
	"ghu_", "ghs_", "ghr_",
	"github_pat_", "glpat-", "gldt-", "glrt-", "glcbt-", "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-",
	"xoxe.", "xapp-", "npm_", "pypi-AgE",
	"hf_", "dop_v1_", "doo_v1_", "dckr_pat_", "shpat_", "shpss_", "hvs.", "hvb.", "ya29.", "1//0", "AIza", "gsk_",
	"xai-", "pplx-", "lin_api_",
	"AGE-SECRET-KEY-1", "atlasv1.", "pul-", "dp.st.", "dp.pt.", "ops_eyJ", "eyJ", "AKIA", "ASIA", "ABIA", "ACCA",
	"SG.", "sk-", "key-", "secret_", "ntn_", "ATATT3x", "r8_",
	"tskey-", "nvapi-", "sbp_", "rubygems_", "figd_", "glsa_", "T3BlbkFJ",
}

// longMarks are tokenMarks that need no look at what follows: they mean a secret wherever they stand.
var longMarks = []string{
	"sk-ant-", "sk-proj-", "sk_live_", "github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "xoxb-",
	"xoxp-", "xoxa-", "xoxr-",
	"xoxs-", "dckr_pat_", "AGE-SECRET-KEY-1", "T3BlbkFJ", "PRIVATE KEY", "hvs.", "whsec_", "pypi-AgE", "rubygems_",
}

// isSecretValue reports whether a value looks like a secret: a token of a known shape, a private key, userinfo in a
// URL, a header that authorises, or a long random-looking text. It would rather be wrong than let one pass; a policy
// can name the variable exactly.
func isSecretValue(value string) bool {
	if slices.ContainsFunc(longMarks, func(m string) bool { return strings.Contains(value, m) }) {
		return true
	}
	if hasUserinfo(value) {
		return true
	}
	words := strings.FieldsFunc(value, func(r rune) bool { return !isTokenRune(r) })
	for i, word := range words {
		if isToken(word) || isRandom(word) || i > 0 && isAuthScheme(words[i-1]) && len(word) >= 8 {
			return true
		}
	}
	return false
}

func isTokenRune(r rune) bool {
	return isWordRune(r) || r == '-' || r == '.' || r == '+' || r == '/' || r == '='
}

func isAuthScheme(word string) bool {
	return strings.EqualFold(word, "bearer") || strings.EqualFold(word, "basic")
}

// isToken reports whether a known mark with 16 bytes or more behind it stands in a word.
func isToken(word string) bool {
	for piece := range strings.FieldsFuncSeq(word, func(r rune) bool { return r == '/' || r == '=' }) {
		for _, mark := range tokenMarks {
			if rest, ok := strings.CutPrefix(piece, mark); ok && len(rest) >= 16 {
				return true
			}
		}
	}
	return false
}

// hasUserinfo finds user:password@host, with or without a scheme, and token@host after one.
func hasUserinfo(value string) bool {
	for word := range strings.FieldsSeq(value) {
		for {
			_, rest, ok := strings.Cut(word, "://")
			if !ok {
				break
			}
			if strings.Contains(rest, "@") {
				return true
			}
			word = rest
		}
		before, _, ok := strings.Cut(word, "@")
		if ok && strings.Contains(before[strings.LastIndexByte(before, '/')+1:], ":") {
			return true
		}
	}
	return false
}

// isRandom reports whether a word is 32 or more bytes of hexadecimal or base64 with the mixture of random text.
func isRandom(word string) bool {
	word = strings.TrimRight(word[strings.LastIndexByte(strings.TrimRight(word, "="), '=')+1:], "=")
	if len(word) < 32 || !hasDigit(word) || strings.Trim(word, "0123456789") == "" {
		return false
	}
	if strings.Trim(strings.ToLower(word), "0123456789abcdef") == "" {
		return true
	}
	if strings.ContainsAny(word, ".") || strings.Count(word, "/") > len(word)/16 || strings.Count(word, "-") > len(word)/16 {
		return false // a path, a version, a sentence with dashes
	}
	lower, upper, digits := 0, 0, 0
	for _, r := range word {
		switch {
		case r >= 'a' && r <= 'z':
			lower++
		case r >= 'A' && r <= 'Z':
			upper++
		case r >= '0' && r <= '9':
			digits++
		}
	}
	return lower*8 >= len(word) && upper*8 >= len(word) && digits >= 2
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }
