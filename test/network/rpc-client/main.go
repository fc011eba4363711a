// Command rpc-client judges a node's consensus RPC with CometBFT's own Go client, unmodified.
//
// Every method of its HTTP client is called. Each answer is decoded into CometBFT's types, encoded
// again and compared with what the node wrote: a member that is missing, superfluous or of another
// form shows as a difference. What the answers claim is checked with CometBFT's own code: hashes of
// blocks, parts, results and parameters, signatures of commits, proofs of transactions. One line
// per finding; the last line counts the checks. The exit code is 1 when there are findings.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"time"

	rpchttp "github.com/cometbft/cometbft/rpc/client/http"
	"github.com/cometbft/cometbft/types"
)

// Longest that all of it may take, so that a lost event ends the program and not the test.
const wholeTimeout = 100 * time.Second

// A judge counts checks and prints findings.
type judge struct {
	ctx      context.Context
	url      string
	client   *rpchttp.HTTP
	txs      []types.Tx
	checks   int
	findings int
}

func main() {
	url := flag.String("node", "", "URL of the consensus RPC")
	txsFile := flag.String("txs", "", "file of 5 transactions of one sender, in base64, one per line, none sent yet")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), wholeTimeout)
	defer cancel()
	client, err := rpchttp.New(*url, "/websocket")
	exitOn(err)
	txs, err := readTxs(*txsFile)
	exitOn(err)
	exitOn(client.Start())
	j := &judge{ctx: ctx, url: *url, client: client, txs: txs}
	j.events()
	j.mempool()
	j.blocks()
	j.node()
	j.refusals()
	j.unsubscribe()
	fmt.Printf("%d checks, %d findings\n", j.checks, j.findings)
	if j.findings > 0 {
		os.Exit(1)
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
}

func readTxs(path string) ([]types.Tx, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var txs []types.Tx
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		tx, err := base64.StdEncoding.DecodeString(lines.Text())
		if err != nil {
			return nil, err
		}
		txs = append(txs, tx)
	}
	if len(txs) < 5 {
		return nil, fmt.Errorf("%d transactions, 5 are needed", len(txs))
	}
	return txs, lines.Err()
}

// check counts one statement and prints it when it does not hold.
func (j *judge) check(holds bool, format string, values ...any) {
	j.checks++
	if !holds {
		j.findings++
		fmt.Printf(format+"\n", values...)
	}
}

// need is a check of a call that must succeed; false where it did not.
func (j *judge) need(what string, err error) bool {
	j.check(err == nil, "%s: %v", what, err)
	return err == nil
}
