module sglang.dev/e2e/tools

go 1.26
