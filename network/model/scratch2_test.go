package model

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestScratchTLS(t *testing.T) {
	a := newAgent(t, `
[[turns]]
text="one"
`)
	mode := os.Getenv("MODE")
	web := httptest.NewUnstartedServer(nil)
	ca := httptest.NewTLSServer(nil)
	defer ca.Close()
	cert := ca.TLS.Certificates[0]
	pemFile := filepath.Join(t.TempDir(), "ca.pem")
	os.WriteFile(pemFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}), 0o600)
	web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "CONNECT" {
			logging(a.server).ServeHTTP(w, r)
			return
		}
		fmt.Println("CONNECT", time.Now().Format("05.000"), r.Host, mode)
		switch mode {
		case "tls":
			c, _, _ := http.NewResponseController(w).Hijack()
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n\r\n")
			tc := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
			br := bufio.NewReader(tc)
			for {
				req, err := http.ReadRequest(br)
				if err != nil {
					fmt.Println("   tls end", err)
					tc.Close()
					return
				}
				b, _ := io.ReadAll(req.Body)
				fmt.Println("   TLS", req.Method, req.URL, req.Host, len(b), req.Header)
				if bytes.HasPrefix(b, []byte("{")) {
					fmt.Println(string(b[:min(len(b), 500)]))
				}
				body := `{"type":"error","error":{"type":"not_found_error","message":"Not Found"}}`
				fmt.Fprintf(tc, "HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", len(body), body)
			}
		case "close":
			c, _, _ := http.NewResponseController(w).Hijack()
			c.Close()
		case "tunnelclose":
			c, _, _ := http.NewResponseController(w).Hijack()
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n\r\n")
			c.Close()
		default:
			var n int
			fmt.Sscan(mode, &n)
			w.WriteHeader(n)
		}
	})
	web.Start()
	defer web.Close()
	a.env = append(a.env, "ANTHROPIC_BASE_URL=http://api.anthropic.com", "HTTP_PROXY="+web.URL, "HTTPS_PROXY="+web.URL)
	if mode == "tls" {
		a.env = append(a.env, "NODE_EXTRA_CA_CERTS="+pemFile, "NODE_TLS_REJECT_UNAUTHORIZED=0")
	}
	if mode == "noproxy" {
		a.env = append(a.env, "HTTPS_PROXY=")
	}
	a.env = append(a.env, strings.Fields(os.Getenv("EXTRA"))...)
	begin := time.Now()
	fmt.Println("RESULT", a.ask("hi").Result, time.Since(begin))
}
