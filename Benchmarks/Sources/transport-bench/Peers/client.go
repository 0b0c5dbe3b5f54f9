// Takes one sample of Go's net/http, with the options and the output of `transport-bench --sample`.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

var (
	base     = flag.String("base", "", "scheme, host and port")
	path     = flag.String("path", "/", "path of the URL")
	inFlight = flag.Int("in-flight", 1, "number of requests in flight")
	seconds  = flag.Float64("seconds", 1, "duration after the warm-up")
	length   = flag.Int("length", 0, "expected length of the body")
	trusted  = flag.String("trusted", "", "file with the trusted certificates")
	http2    = flag.Bool("http2", false, "offer HTTP/2")
)

// The keys are those of Sample.swift.
type sample struct {
	RequestsPerSecond float64 `json:"requestsPerSecond"`
	CPUPerRequest     float64 `json:"cpuPerRequest"`
	PeakMemory        float64 `json:"peakMemory"`
	Threads           int     `json:"threads"`
}

func main() {
	flag.Parse()
	_, err := run(*seconds / 5)
	fail(err)
	cpu, start := cpuSeconds(), time.Now()
	responses, err := run(*seconds)
	fail(err)
	elapsed := time.Since(start).Seconds()
	fail(json.NewEncoder(os.Stdout).Encode(sample{
		RequestsPerSecond: float64(responses) / elapsed,
		CPUPerRequest:     (cpuSeconds() - cpu) / float64(responses) * 1e6,
		PeakMemory:        float64(status("VmHWM:")) / 1024,
		Threads:           status("Threads:"),
	}))
}

// run sends requests from one goroutine for each request in flight, with a new client. It returns
// the number of responses.
func run(seconds float64) (int, error) {
	client, err := newClient()
	if err != nil {
		return 0, err
	}
	defer client.CloseIdleConnections()
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	counts, failures := make([]int, *inFlight), make([]error, *inFlight)
	var lanes sync.WaitGroup
	for lane := range counts {
		lanes.Add(1)
		go func(lane int) {
			defer lanes.Done()
			for time.Now().Before(end) && failures[lane] == nil {
				failures[lane] = get(client)
				counts[lane]++
			}
		}(lane)
	}
	lanes.Wait()
	responses := 0
	for lane, count := range counts {
		if failures[lane] != nil {
			return 0, failures[lane]
		}
		responses += count
	}
	return responses, nil
}

func newClient() (*http.Client, error) {
	transport := &http.Transport{
		MaxIdleConnsPerHost: *inFlight,
		ForceAttemptHTTP2:   *http2,
		// net/http resumes no TLS session without a cache.
		TLSClientConfig: &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(64)},
	}
	if *trusted != "" {
		certificates, err := os.ReadFile(*trusted)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(certificates) {
			return nil, errors.New("the file of the trusted certificates contains none")
		}
		transport.TLSClientConfig.RootCAs = roots
	}
	return &http.Client{Transport: transport}, nil
}

func get(client *http.Client) error {
	response, err := client.Get(*base + *path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != 200 || len(body) != *length || *http2 != (response.ProtoMajor == 2) {
		return fmt.Errorf("%s, status %d, %d bytes", response.Proto, response.StatusCode, len(body))
	}
	return nil
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	fail(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return (time.Duration(usage.Utime.Nano()) + time.Duration(usage.Stime.Nano())).Seconds()
}

// status returns a number that the kernel reports for this process, or 0 on other systems.
func status(name string) int {
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			number, _ := strconv.Atoi(fields[1])
			return number
		}
	}
	return 0
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-client:", err)
		os.Exit(1)
	}
}
