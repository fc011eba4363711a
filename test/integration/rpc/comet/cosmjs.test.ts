/**
 * The consensus RPC, judged by CosmJS: every call of its client, and its own hashes.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Comet38Client, type comet38, connectComet, HttpBatchClient } from "@cosmjs/tendermint-rpc";
import { Wallet } from "ethers";
import { bytesToAddress, parseAddress, toBech32 } from "../../../../chain/address.js";
import { msToNs } from "../../../../chain/consensus/block-id.js";
import { hashConsensusHeader } from "../../../../chain/consensus/consensus-header.js";
import { verifyMerkleProof } from "../../../../chain/consensus/merkle.js";
import { ProtoReader, ProtoWriter } from "../../../../chain/protobuf/wire.js";
import { sha256 } from "../../../../chain/hashes.js";
import { bytesToHash32, hexToBytes, parseHexBytes } from "../../../../chain/hex.js";
import { encodeSdkTransaction } from "../../../../chain/consensus/sdk-transaction.js";
import { decodeTransaction, recoverSender } from "../../../../chain/transaction.js";
import { CometTestChain } from "../../../helpers/chains/comet-chain.js";
import { until } from "../../../helpers/until.js";
// A file that the package does not export.
import { hashTx } from "../../../../node_modules/@cosmjs/tendermint-rpc/build/comet38/hasher.js";

const faucet = new Wallet(`0x${"31".repeat(32)}`);
const receiver = new Wallet(`0x${"32".repeat(32)}`);
const faucetText = toBech32(parseAddress(faucet.address));
const receiverText = toBech32(parseAddress(receiver.address));
const FEE_ATOKEN = 21_000n * 25_000_000n;

let chain: CometTestChain;
let client: Comet38Client;

function send(nonce: number, valueAtoken: bigint, to = receiver.address): Promise<string> {
  return faucet.signTransaction({
    type: 0,
    chainId: 6940,
    nonce,
    gasPrice: 25_000_000n,
    gasLimit: 21_000n,
    to,
    value: valueAtoken,
  });
}

function wrap(raw: string): Uint8Array {
  const tx = decodeTransaction(parseHexBytes(raw));
  return encodeSdkTransaction(tx, recoverSender(tx));
}

/** Disconnects for good: CosmJS connects again a second after its own `disconnect`. */
async function hangUp(socket: Comet38Client): Promise<void> {
  socket.disconnect();
  const connection: object = Reflect.get(Reflect.get(socket, "client"), "socket");
  const again = () => Reflect.get(connection, "reconnectTimeout");
  await until(() => again() !== null, { timeoutMs: 5_000 });
  clearTimeout(again());
}

/** CometBFT's header hash, from what CosmJS read of the JSON alone. */
function hashOfHeader(header: comet38.Header): Uint8Array {
  const hash = (bytes: Uint8Array) => bytesToHash32(bytes);
  const { lastBlockId, time } = header;
  const consensusHeader = {
    blockVersion: header.version.block,
    appVersion: header.version.app,
    chainId: header.chainId,
    height: header.height,
    timeNs: msToNs(time.getTime()) + BigInt(time.nanoseconds ?? 0),
    lastBlockId:
      lastBlockId === null
        ? undefined
        : {
            hash: hash(lastBlockId.hash),
            parts: { total: lastBlockId.parts.total, hash: hash(lastBlockId.parts.hash) },
          },
    lastCommitHash: hash(header.lastCommitHash),
    dataHash: hash(header.dataHash),
    validatorsHash: hash(header.validatorsHash),
    nextValidatorsHash: hash(header.nextValidatorsHash),
    consensusHash: hash(header.consensusHash),
    appHash: hash(header.appHash),
    lastResultsHash: hash(header.lastResultsHash),
    evidenceHash: hash(header.evidenceHash),
    proposerAddress: bytesToAddress(header.proposerAddress),
  };
  return hexToBytes(hashConsensusHeader(consensusHeader));
}

beforeAll(async () => {
  chain = await CometTestChain.open(faucet.address);
  await chain.mine([await send(0, 5n), await send(1, 7n)]);
  await chain.mine([], { absent: [2] });
  await chain.mine([await send(2, 5n)]);
  client = await Comet38Client.connect(chain.url);
});

afterAll(async () => {
  client.disconnect();
  await chain.close();
});

describe("CosmJS", () => {
  it("chooses its 0.38 client by the status, which shows consensus' own hashes", async () => {
    const chosen = await connectComet(chain.url);
    expect(chosen).toBeInstanceOf(Comet38Client);
    chosen.disconnect();
    const status = await client.status();
    const { header } = chain.consensus.load(3)?.block ?? {};
    expect(status.syncInfo.latestBlockHeight).toBe(3);
    expect(status.syncInfo.earliestBlockHeight).toBe(1);
    expect(Buffer.from(status.syncInfo.latestAppHash)).toEqual(
      Buffer.from(hexToBytes(header?.appHash ?? "0x")),
    );
    expect(status.validatorInfo.votingPower).toBe(10n);
    expect(status.nodeInfo.other.get("tx_index")).toBe("on");
    expect(await client.health()).toBeNull();
  });

  it("reads blocks whose ids, hashes and transactions belong together", async () => {
    for (const height of [1, 2, 3]) {
      const { block, blockId } = await client.block(height);
      // CosmJS' own hashBlock is that of Tendermint 0.33 (amino): no judge of headers of today.
      expect([height, hashOfHeader(block.header)]).toEqual([height, blockId.hash]);
      const next = height < 3 ? await client.block(height + 1) : undefined;
      if (next !== undefined) expect(next.block.lastCommit?.blockId).toEqual(blockId);
      for (const tx of block.txs) {
        const { hash } = await client.tx({ hash: hashTx(tx) });
        expect(hash).toEqual(hashTx(tx));
      }
    }
    expect((await client.block(1)).block.txs).toHaveLength(2);
  });

  it("reads commits with absent signatures, and whether they are canonical", async () => {
    const second = await client.commit(2);
    expect(second.canonical).toBe(true);
    expect(second.commit.signatures.map(({ blockIdFlag }) => blockIdFlag)).toEqual([2, 2, 1, 2]);
    expect((await client.commit()).canonical).toBe(false);
    expect((await client.commit(1)).header.height).toBe(1);
  });

  it("pages validators, with priorities, up to the height in progress", async () => {
    const page = await client.validators({ height: 4, page: 2, per_page: 3 });
    expect([page.blockHeight, page.count, page.total]).toEqual([4, 1, 4]);
    const all = await client.validatorsAll(1);
    expect(all.validators.map(({ votingPower }) => votingPower)).toEqual([13n, 12n, 11n, 10n]);
    expect(all.validators.reduce((sum, one) => sum + (one.proposerPriority ?? 0), 0)).toBe(0);
    await expect(client.validators({ height: 5 })).rejects.toThrow(/less than or equal to/);
    await expect(client.validators({ height: 1, page: 3, per_page: 3 })).rejects.toThrow(
      /page should be within \[1, 2\] range, given 3/,
    );
  });

  it("reads metas newest first, results, genesis and the application's state", async () => {
    const metas = await client.blockchain(1, 2);
    expect(metas.lastHeight).toBe(3);
    expect(metas.blockMetas.map(({ header, numTxs }) => [header.height, numTxs])).toEqual([
      [2, 0],
      [1, 2],
    ]);
    const results = await client.blockResults(1);
    expect(
      results.results.map(({ code, gasUsed, gasWanted }) => [code, gasUsed, gasWanted]),
    ).toEqual([
      [0, 21_000n, 21_000n],
      [0, 21_000n, 21_000n],
    ]);
    const burn = results.finalizeBlockEvents.find(({ type }) => type === "fee_burn");
    expect(burn?.attributes.map(({ key, value }) => [key, value])).toEqual([
      ["amount", `${2n * FEE_ATOKEN}atoken`],
      ["burned", `${FEE_ATOKEN}atoken`],
      ["proposer_reward", "0atoken"],
      ["treasury", `${FEE_ATOKEN}atoken`],
      ["mode", "EndBlock"],
    ]);
    const genesis = await client.genesis();
    expect([genesis.chainId, genesis.validators.length]).toEqual(["chain_6940-1", 4]);
    const info = await client.abciInfo();
    const headHash = chain.chain.view.head().hash;
    expect([info.data, info.lastBlockHeight]).toEqual(["causeway", 3]);
    expect(Buffer.from(info.lastBlockAppHash ?? [])).toEqual(Buffer.from(hexToBytes(headHash)));
  });

  it("finds transactions by event, in either order, page by page, with proofs", async () => {
    const query = `transfer.recipient='${receiverText}' AND tx.height<=3`;
    const found = await client.txSearch({ query, prove: true, per_page: 2 });
    expect(found.totalCount).toBe(3);
    expect(found.txs.map(({ height, index }) => [height, index])).toEqual([
      [1, 0],
      [1, 1],
    ]);
    for (const { height, index, tx, proof } of found.txs) {
      const { header } = (await client.block(height)).block;
      expect(Buffer.from(proof?.rootHash ?? [])).toEqual(Buffer.from(header.dataHash));
      const leaf = sha256(tx);
      const shown = proof?.proof;
      const merkle = {
        total: shown?.total ?? 0,
        index,
        leafHash: shown?.leafHash ?? new Uint8Array(0),
        aunts: shown?.aunts ?? [],
      };
      expect(verifyMerkleProof(merkle, header.dataHash, leaf)).toBe(true);
      expect(verifyMerkleProof(merkle, header.dataHash, sha256(leaf))).toBe(false);
    }
    const last = await client.txSearch({ query, per_page: 1, order_by: "desc" });
    expect(last.txs.map(({ height }) => height)).toEqual([3]);
    expect((await client.txSearchAll({ query })).txs).toHaveLength(3);
    const blocks = await client.blockSearch({ query: "fee_burn.burned EXISTS" });
    // CosmJS sorts them by itself; the order of the pages is ours.
    expect(blocks.blocks.map(({ block }) => block.header.height)).toEqual([1, 3]);
    const newest = await client.blockSearch({ query: "fee_burn.burned EXISTS", per_page: 1 });
    expect(newest.blocks.map(({ block }) => block.header.height)).toEqual([3]);
    expect((await client.blockSearchAll({ query: "block.height>1" })).totalCount).toBe(2);
  });

  it("reads module state by protobuf paths", async () => {
    const request = new ProtoWriter().bytes(1, receiverText).bytes(2, "atoken").finish();
    const path = "/cosmos.bank.v1beta1.Query/Balance";
    const balance = async (height?: number) => {
      const { value, code } = await client.abciQuery({ path, data: request, height });
      expect(code).toBe(0);
      return new ProtoReader(new ProtoReader(value, [1]).bytes(1), [1, 2]).text(2);
    };
    expect([await balance(1), await balance(2), await balance()]).toEqual(["12", "12", "17"]);
    const supply = await client.abciQuery({
      path: "/cosmos.bank.v1beta1.Query/SupplyOf",
      data: new ProtoWriter().bytes(1, "atoken").finish(),
    });
    const coin = new ProtoReader(new ProtoReader(supply.value, [1]).bytes(1), [1, 2]);
    expect(coin.text(2)).toBe(chain.chain.view.supply(3)?.totalAtoken.toString());
    const account = await client.abciQuery({
      path: "/cosmos.auth.v1beta1.Query/Account",
      data: new ProtoWriter().bytes(1, faucetText).finish(),
    });
    const any = new ProtoReader(new ProtoReader(account.value, [1]).bytes(1), [1, 2]);
    expect(any.text(1)).toBe("/cosmos.auth.v1beta1.BaseAccount");
    expect(new ProtoReader(any.bytes(2), [1, 2, 3, 4]).count(4)).toBe(3);
    const stranger = toBech32(parseAddress(`0x${"99".repeat(20)}`));
    const missing = await client.abciQuery({
      path: "/cosmos.auth.v1beta1.Query/Account",
      data: new ProtoWriter().bytes(1, stranger).finish(),
    });
    expect([missing.code, missing.log]).toEqual([
      22,
      `rpc error: code = NotFound desc = account ${stranger} not found: key not found`,
    ]);
    const unknown = await client.abciQuery({ path: "/nothing", data: request });
    expect([unknown.code, unknown.log]).toEqual([
      6,
      "unknown query path: /nothing: unknown request",
    ]);
    const future = await client.abciQuery({ path, data: request, height: 99 });
    expect(future.code).toBe(26);
  });

  it("broadcasts: at once, when it is in the pool, and when it is in a block", async () => {
    const first = wrap(await send(3, 1n));
    const sync = await client.broadcastTxSync({ tx: first });
    expect([sync.code, sync.hash]).toEqual([0, hashTx(first)]);
    await expect(client.broadcastTxSync({ tx: first })).rejects.toThrow(/already exists in cache/);
    const late = await client.broadcastTxSync({ tx: wrap(await send(0, 1n)) });
    expect(late.code).toBe(3);
    expect(Buffer.from(late.log ?? "").toString()).toContain("nonce too low");
    const garbage = await client.broadcastTxSync({ tx: Uint8Array.of(1, 2, 3) });
    expect([garbage.code, garbage.codespace]).toEqual([2, "sdk"]);
    expect(await client.numUnconfirmedTxs()).toMatchObject({ total: 1, totalBytes: first.length });
    const second = wrap(await send(4, 2n));
    await client.broadcastTxAsync({ tx: second });
    await until(() => chain.pool.counts().pending === 2, { timeoutMs: 5_000 });
    const third = wrap(await send(5, 3n));
    const pending = client.broadcastTxCommit({ tx: third });
    await until(() => chain.pool.counts().pending === 3, { timeoutMs: 5_000 });
    const { committed } = await chain.minePool();
    const { height } = committed.block.header;
    const mined = await pending;
    expect([mined.height, mined.checkTx.code, mined.txResult?.code]).toEqual([height, 0, 0]);
    expect(mined.hash).toEqual(hashTx(third));
    expect((await client.tx({ hash: hashTx(second) })).index).toBe(1);
    const refused = await client.broadcastTxCommit({ tx: wrap(await send(0, 1n)) });
    expect([refused.height, refused.checkTx.code]).toEqual([0, 3]);
    expect(await client.numUnconfirmedTxs()).toMatchObject({ total: 0, totalBytes: 0 });
  });

  it("knows bytes that a block has: who sends them again is not told to sign anew", async () => {
    const mined = wrap(await send(2, 5n));
    expect((await client.tx({ hash: hashTx(mined) })).height).toBe(3);
    // As a node of cosmos/evm (SDK 0.54.3, CometBFT 0.39.3) says it, not a wrong sequence.
    const text = { code: -32603, message: "Internal error", data: "tx already exists in cache" };
    for (const method of ["broadcast_tx_sync", "broadcast_tx_commit"]) {
      const params = { tx: Buffer.from(mined).toString("base64") };
      const request = { jsonrpc: "2.0", id: 1, method, params };
      const answer = await fetch(chain.url, { method: "POST", body: JSON.stringify(request) });
      expect([method, await answer.json()]).toMatchObject([method, { error: text }]);
    }
    expect(chain.pool.counts()).toMatchObject({ pending: 0, queued: 0 });
  });

  it("takes CosmJS' batches", async () => {
    const batch = new HttpBatchClient(chain.url, { batchSizeLimit: 20, dispatchInterval: 5 });
    const batched = Comet38Client.create(batch);
    const blocks = await Promise.all([1, 2, 3].map((height) => batched.block(height)));
    expect(blocks.map(({ block }) => block.header.height)).toEqual([1, 2, 3]);
    batched.disconnect();
  });
});

describe("CosmJS over WebSocket", () => {
  it("is told of blocks, headers and its transactions, each once and in order", async () => {
    const socket = await Comet38Client.connect(chain.url.replace("http", "ws"));
    const seen: string[] = [];
    const from = chain.consensus.height();
    const note = (text: string) => seen.push(text);
    const subscriptions = [
      socket.subscribeNewBlock().subscribe({
        next: ({ header, txs }) => note(`block ${header.height} ${txs.length}`),
        error: (error) => note(String(error)),
      }),
      socket
        .subscribeNewBlockHeader()
        .subscribe({ next: ({ height }) => note(`header ${height}`) }),
      socket.subscribeTx(`transfer.amount='11atoken'`).subscribe({
        next: ({ height, hash, result }) =>
          note(`tx ${height} ${Buffer.from(hash).toString("hex").slice(0, 4)} ${result.code}`),
      }),
    ];
    // One after the other through one connection: when this is answered, so are those.
    expect((await socket.status()).syncInfo.latestBlockHeight).toBe(from);
    const wanted = await send(6, 11n);
    await chain.mine([wanted, await send(7, 12n)]);
    await chain.mine();
    const hash = Buffer.from(hashTx(wrap(wanted)))
      .toString("hex")
      .slice(0, 4);
    const expected = [
      `block ${from + 1} 2`,
      `header ${from + 1}`,
      `tx ${from + 1} ${hash} 0`,
      `block ${from + 2} 0`,
      `header ${from + 2}`,
    ];
    await until(() => seen.length >= expected.length, { timeoutMs: 5_000 });
    expect(seen).toEqual(expected);
    for (const subscription of subscriptions) subscription.unsubscribe();
    await hangUp(socket);
  });
});
