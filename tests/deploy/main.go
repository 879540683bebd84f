// Loads a compose file with the library of docker compose: schema, references and interpolation.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	options, err := cli.NewProjectOptions(os.Args[1:], cli.WithOsEnv)
	if err == nil {
		project, problem := options.LoadProject(context.Background())
		if err = problem; err == nil {
			fmt.Println(project.ServiceNames())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
