package network

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// CA is a certificate authority of one run: its key is only in this process's memory, it is good for a day, and by its
// name constraint (RFC 5280 §4.2.1.10) for one host only, whoever trusts it.
type CA struct {
	pem  []byte
	leaf tls.Certificate
}

// NewCA makes an authority, and a certificate by it, for the name host.
func NewCA(host Host) (*CA, error) {
	if host.IsZero() || host.IsAddr() {
		return nil, fmt.Errorf("make certificate authority: %q is not a name", host)
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make certificate authority: %w", err)
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make certificate authority: %w", err)
	}
	ca, leaf := certificates(host.String(), time.Now())
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("make certificate authority: %w", err)
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, leafKey.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	return &CA{
		pem:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
		leaf: tls.Certificate{Certificate: [][]byte{leafDER, caDER}, PrivateKey: leafKey},
	}, nil
}

// certificates are the templates of both. The hour before now is for clocks that differ.
func certificates(name string, now time.Time) (ca, leaf *x509.Certificate) {
	from, to := now.Add(-time.Hour), now.Add(24*time.Hour)
	ca = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sandboxrun, one run, " + name}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: []string{name},
	}
	leaf = &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: from, NotAfter: to,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	return ca, leaf
}

// PEM returns the authority's certificate, for the trust store of the sandbox.
func (ca *CA) PEM() []byte { return ca.pem }
