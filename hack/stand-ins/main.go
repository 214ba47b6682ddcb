// The servers that the end-to-end suites of ToolHive pull as images, for machines that cannot pull them. Which one it is, is decided
// by the name of the program. They have the tools, arguments and variables of the originals as far as the suites use them, and call
// nothing outside of the cluster.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	name := filepath.Base(os.Args[0])
	switch name {
	case "yardstick-server":
		serve(yardstick(), "stdio", os.Getenv("PORT"))
	case "gofetch":
		serve(gofetch(), "streamable-http", os.Getenv("MCP_PORT"))
	case "osv-mcp":
		serve(osv(), "streamable-http", os.Getenv("MCP_PORT"))
	case "text-embeddings-router":
		embeddings()
	default:
		log.Fatalf("there is no stand-in %s", name)
	}
}

func serve(server *mcp.Server, transport, port string) {
	one := func(*http.Request) *mcp.Server { return server }
	address := ":" + cmp.Or(port, "8080")
	switch transport = cmp.Or(os.Getenv("TRANSPORT"), os.Getenv("MCP_TRANSPORT"), transport); transport {
	case "stdio":
		log.Fatal(server.Run(context.Background(), &mcp.StdioTransport{}))
	case "sse":
		http.Handle("/sse", mcp.NewSSEHandler(one, nil))
	default:
		stateless := os.Getenv("STATELESS") == "true"
		http.Handle("/mcp", mcp.NewStreamableHTTPHandler(one, &mcp.StreamableHTTPOptions{Stateless: stateless}))
	}
	log.Fatal(http.ListenAndServe(address, nil))
}

func failed(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// One tool, which returns what it gets, with the `_meta` of the request.
func yardstick() *mcp.Server {
	type input struct {
		Input string `json:"input"`
	}
	type output struct {
		Output string `json:"output"`
	}
	const pattern = "^[a-zA-Z0-9]+$"
	alphanumeric := regexp.MustCompile(pattern)
	server := mcp.NewServer(&mcp.Implementation{Name: "echo-server", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{
		Name:        "echo",
		Description: "Echo back an alphanumeric string for deterministic testing",
		InputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"input": {Type: "string", Pattern: pattern, Description: "Alphanumeric string to echo back"},
			},
			Required: []string{"input"},
		},
	}, func(_ context.Context, request *mcp.CallToolRequest, in input) (*mcp.CallToolResult, output, error) {
		if !alphanumeric.MatchString(in.Input) {
			return failed("input must be alphanumeric only"), output{}, nil
		}
		meta := mcp.Meta{}
		for key, value := range request.Params.Meta {
			// What belongs to the hop is not echoed.
			if !strings.HasPrefix(key, "io.modelcontextprotocol/") {
				meta[key] = value
			}
		}
		return &mcp.CallToolResult{Meta: meta}, output{in.Input}, nil
	})
	return server
}

// It fetches what it can reach, which within the cluster is only the cluster.
func gofetch() *mcp.Server {
	type input struct {
		URL        string `json:"url" jsonschema:"URL to fetch"`
		MaxLength  *int   `json:"max_length,omitempty" jsonschema:"Maximum number of characters to return"`
		StartIndex *int   `json:"start_index,omitempty" jsonschema:"Start index for truncated content"`
		Raw        bool   `json:"raw,omitempty" jsonschema:"Get the actual HTML content without simplification"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "fetch-server", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{
		Name:        "fetch",
		Description: "Fetches a URL from the internet and optionally extracts its contents as markdown.",
	}, func(ctx context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, in.URL, nil)
		if err != nil {
			return nil, nil, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil, nil, err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, 5000))
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(body)}}}, nil, nil
	})
	return server
}

// The database is not there: it knows no vulnerability.
func osv() *mcp.Server {
	type query struct {
		Commit      string `json:"commit,omitempty"`
		Version     string `json:"version,omitempty"`
		PackageName string `json:"package_name,omitempty"`
		Ecosystem   string `json:"ecosystem,omitempty"`
		PURL        string `json:"purl,omitempty"`
	}
	type queries struct {
		Queries []query `json:"queries"`
	}
	type vulnerability struct {
		ID string `json:"id"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "osv-mcp", Version: "0.1.0"}, nil)
	none := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "{}"}}}
	mcp.AddTool(server, &mcp.Tool{
		Name:        "query_vulnerability",
		Description: "Query for vulnerabilities affecting a specific package version or commit",
	}, func(context.Context, *mcp.CallToolRequest, query) (*mcp.CallToolResult, any, error) {
		return none, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{
		Name:        "query_vulnerabilities_batch",
		Description: "Query for vulnerabilities affecting multiple packages or commits at once",
	}, func(context.Context, *mcp.CallToolRequest, queries) (*mcp.CallToolResult, any, error) {
		return none, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{
		Name:        "get_vulnerability",
		Description: "Get details for a specific vulnerability by ID",
	}, func(context.Context, *mcp.CallToolRequest, vulnerability) (*mcp.CallToolResult, any, error) {
		return failed("unknown vulnerability"), nil, nil
	})
	return server
}

// Vectors of the words of a text: texts are near to each other if they share words. There is no model.
func embeddings() {
	port := cmp.Or(os.Getenv("PORT"), "8080")
	for i, argument := range os.Args[1:] {
		if argument == "--port" && i+2 < len(os.Args) {
			port = os.Args[i+2]
		}
	}
	http.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/info", func(response http.ResponseWriter, _ *http.Request) {
		io.WriteString(response, `{"model_id":"stand-in","max_client_batch_size":32,"max_input_length":512}`)
	})
	http.HandleFunc("POST /embed", func(response http.ResponseWriter, request *http.Request) {
		var body struct{ Inputs any }
		if err := json.NewDecoder(http.MaxBytesReader(response, request.Body, 4<<20)).Decode(&body); err != nil {
			http.Error(response, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		texts, many := body.Inputs.([]any)
		if !many {
			texts = []any{body.Inputs}
		}
		vectors := [][]float64{}
		for _, text := range texts {
			text, _ := text.(string)
			vectors = append(vectors, vector(text))
		}
		response.Header().Set("Content-Type", "application/json")
		json.NewEncoder(response).Encode(vectors)
	})
	log.Fatal(http.ListenAndServe(":"+port, nil))
}

func vector(text string) []float64 {
	words := regexp.MustCompile(`[a-z0-9]+`).FindAllString(strings.ToLower(text), -1)
	vector := make([]float64, 384)
	for _, word := range words {
		sum := sha256.Sum256([]byte(word))
		vector[(int(sum[0])<<8|int(sum[1]))%len(vector)]++
	}
	// They have the length one, as the original's.
	length := 0.0
	for _, value := range vector {
		length += value * value
	}
	for i := range vector {
		vector[i] /= math.Sqrt(max(length, 1))
	}
	return vector
}
