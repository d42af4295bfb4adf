module github.com/olmkit/olmkit/tools/kind/kind

go 1.26.3

tool sigs.k8s.io/kind

require (
	al.essio.dev/pkg/shellescape v1.6.0 // indirect
	github.com/BurntSushi/toml v1.6.0 // indirect
	github.com/evanphx/json-patch/v5 v5.9.11 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/pelletier/go-toml v1.9.5 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/spf13/cobra v1.10.2 // indirect
	github.com/spf13/pflag v1.0.10 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
	sigs.k8s.io/kind v0.33.0 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)
