// Opens a sealed file through sops' Go library, as programs do that build it in: library FILE FORMAT.
//
// The file is opened by name and as bytes; both must give the same.
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/getsops/sops/v3/decrypt"
)

func main() {
	if len(os.Args) != 3 {
		fail("usage: library FILE FORMAT")
	}
	path, format := os.Args[1], os.Args[2]
	named, err := decrypt.File(path, format)
	if err != nil {
		fail("by name: %v", err)
	}
	sealed, err := os.ReadFile(path)
	if err != nil {
		fail("%v", err)
	}
	data, err := decrypt.Data(sealed, format)
	if err != nil {
		fail("as bytes: %v", err)
	}
	if !bytes.Equal(named, data) {
		fail("the file and its bytes open to different texts")
	}
	if _, err := os.Stdout.Write(data); err != nil {
		fail("%v", err)
	}
}

func fail(problem string, details ...any) {
	fmt.Fprintf(os.Stderr, problem+"\n", details...)
	os.Exit(1)
}
