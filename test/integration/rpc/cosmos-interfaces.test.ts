/**
 * REST, gRPC, `abci_query` and the command line over one chain: judged by CosmJS' client, by its
 * codecs (`cosmjs-types`, compiled from the same published files by others), and by each other.
 * @jest-environment ./test/helpers/cosmos/cosmjs-environment.mjs
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import * as grpc from "@grpc/grpc-js";
import type { StargateClient as Client } from "@cosmjs/stargate";
import { QueryAccountResponse } from "cosmjs-types/cosmos/auth/v1beta1/query";
import { BaseAccount } from "cosmjs-types/cosmos/auth/v1beta1/auth";
import { QueryBalanceRequest, QueryBalanceResponse } from "cosmjs-types/cosmos/bank/v1beta1/query";
import { GetLatestBlockResponse } from "cosmjs-types/cosmos/base/tendermint/v1beta1/query";
import { GetTxResponse, GetTxsEventResponse } from "cosmjs-types/cosmos/tx/v1beta1/service";
import { FileDescriptorProto } from "cosmjs-types/google/protobuf/descriptor";
import { Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { encodeSdkTransaction } from "../../../chain/consensus/sdk-transaction.js";
import { sha256 } from "../../../chain/hashes.js";
import { parseHexBytes } from "../../../chain/hex.js";
import { decodeMessage, encodeMessage } from "../../../chain/protobuf/codec.js";
import { JsonWriter } from "../../../chain/protobuf/json.js";
import { MessageReader } from "../../../chain/protobuf/values.js";
import { decodeTransaction, recoverSender } from "../../../chain/transaction.js";
import { createProgram } from "../../../cli/program.js";
import { createClientMemory } from "../../../node/rpc/client-memory.js";
import { startGrpcServer } from "../../../node/rpc/grpc/server.js";
import type { RpcServer } from "../../../node/rpc/http-listener.js";
import { type RestServerOptions, startRestServer } from "../../../node/rpc/rest/server.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { CometTestChain } from "../../helpers/chains/comet-chain.js";

declare const cosmjsStargate: typeof import("@cosmjs/stargate");
const { StargateClient } = cosmjsStargate;

const log = createLogger({ component: "test", level: "silent" });
const LOOPBACK = { host: "127.0.0.1", port: 0 };
const faucet = new Wallet(`0x${"41".repeat(32)}`);
const receiver = new Wallet(`0x${"42".repeat(32)}`);
const faucetText = toBech32(parseAddress(faucet.address));
const receiverText = toBech32(parseAddress(receiver.address));
const nobody = toBech32(parseAddress(`0x${"77".repeat(20)}`));

let chain: CometTestChain;
let rest: RpcServer;
let server: RpcServer;
let client: Client;
let base: string;
let rpc: grpc.Client;
let sdkTx: Uint8Array;
let sdkHash: string;
let evmHash: string;

function send(nonce: number, valueAtoken: bigint): Promise<string> {
  return faucet.signTransaction({
    type: 0,
    chainId: 6940,
    nonce,
    gasPrice: 25_000_000n,
    gasLimit: 21_000n,
    to: receiver.address,
    value: valueAtoken,
  });
}

function wrap(raw: string): Uint8Array {
  const tx = decodeTransaction(parseHexBytes(raw));
  return encodeSdkTransaction(tx, recoverSender(tx));
}

function restOptions(): RestServerOptions {
  return {
    listen: LOOPBACK,
    queries: chain.queries,
    allowedOrigins: ["https://wallet.example"],
    isSwaggerServed: true,
    maxConnections: 100,
    maxBodyBytes: 100_000,
    requestsPerSecond: 0,
    timeoutMs: 20_000,
    memory: createClientMemory(systemClock),
    clock: systemClock,
    log,
  };
}

async function get(path: string, headers: Record<string, string> = {}, origin = base) {
  const reply = await fetch(`${origin}${path}`, { headers });
  const body: unknown = await reply.json();
  return { status: reply.status, headers: reply.headers, body };
}

async function post(path: string, body: unknown) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const reply = await fetch(`${base}${path}`, { method: "POST", body: text });
  const answer: unknown = await reply.json();
  return { status: reply.status, body: answer };
}

/** A unary call with bytes in and out. */
function call(
  path: string,
  request: Uint8Array = new Uint8Array(0),
  headers: Record<string, string> = {},
): Promise<{ readonly bytes: Buffer; readonly height: string | undefined }> {
  const metadata = new grpc.Metadata();
  for (const [key, value] of Object.entries(headers)) metadata.set(key, value);
  const same = (bytes: Buffer) => bytes;
  return new Promise((resolve, reject) => {
    let height: string | undefined;
    const unary = rpc.makeUnaryRequest(
      path,
      same,
      same,
      Buffer.from(request),
      metadata,
      (error, bytes) => {
        if (error !== null || bytes === undefined) reject(error ?? new Error("no answer"));
        else resolve({ bytes, height });
      },
    );
    unary.on("metadata", (given) => {
      height = given.get("x-cosmos-block-height")[0]?.toString();
    });
  });
}

beforeAll(async () => {
  chain = await CometTestChain.open(faucet.address);
  const raw = await send(0, 5n);
  sdkTx = wrap(raw);
  sdkHash = Buffer.from(sha256(sdkTx)).toString("hex").toUpperCase();
  evmHash = decodeTransaction(parseHexBytes(raw)).hash;
  await chain.mine([raw, await send(1, 7n)]);
  await chain.mine([]);
  await chain.mine([await send(2, 5n)]);
  rest = await startRestServer(restOptions());
  const listen = LOOPBACK;
  server = await startGrpcServer({
    listen,
    queries: chain.queries,
    requestsPerSecond: 0,
    timeoutMs: 20_000,
    clock: systemClock,
    log,
  });
  base = `http://127.0.0.1:${rest.address.port}`;
  rpc = new grpc.Client(`127.0.0.1:${server.address.port}`, grpc.credentials.createInsecure());
  client = await StargateClient.connect(chain.url);
});

afterAll(async () => {
  client.disconnect();
  rpc.close();
  await rest.stop();
  await server.stop();
  await chain.close();
});

describe("CosmJS' StargateClient", () => {
  it("reads chain, accounts and balances", async () => {
    expect(await client.getChainId()).toBe("chain_6940-1");
    expect(await client.getHeight()).toBe(3);
    const balance = await client.getBalance(receiverText, "atoken");
    expect(balance).toEqual({ denom: "atoken", amount: "17" });
    expect(await client.getAllBalances(receiverText)).toEqual([balance]);
    expect(await client.getAllBalances(nobody)).toEqual([]);
    const account = { address: faucetText, pubkey: null, accountNumber: 0n, sequence: 3 };
    expect(await client.getAccount(faucetText)).toEqual(account);
    expect(await client.getAccount(nobody)).toBeNull();
    expect(await client.getSequence(faucetText)).toEqual({ accountNumber: 0n, sequence: 3 });
  });

  it("reads blocks and finds transactions", async () => {
    const block = await client.getBlock(1);
    expect(block.txs.map((tx) => Buffer.from(tx).toString("hex"))).toContain(
      Buffer.from(sdkTx).toString("hex"),
    );
    const tx = await client.getTx(sdkHash);
    expect(tx).toMatchObject({ height: 1, txIndex: 0, code: 0, gasUsed: 21_000n });
    const sender = { key: "transfer.sender", value: faucetText };
    const found = await client.searchTx([sender, { key: "transfer.amount", value: "5atoken" }]);
    expect(found.map(({ height }) => height)).toEqual([1, 3]);
    const byText = await client.searchTx(`transfer.amount='7atoken' AND tx.height=1`);
    expect(byText.map(({ txIndex }) => txIndex)).toEqual([1]);
  });
});

describe("gRPC", () => {
  it("answers in the bytes of the published messages", async () => {
    const request = QueryBalanceRequest.fromPartial({ address: receiverText, denom: "atoken" });
    const { bytes, height } = await call(
      "/cosmos.bank.v1beta1.Query/Balance",
      QueryBalanceRequest.encode(request).finish(),
    );
    const expected = QueryBalanceResponse.fromPartial({
      balance: { denom: "atoken", amount: "17" },
    });
    expect(QueryBalanceResponse.decode(bytes)).toEqual(expected);
    expect(Buffer.from(QueryBalanceResponse.encode(expected).finish())).toEqual(bytes);
    expect(height).toBe("3");
    const { account } = QueryAccountResponse.decode(
      (await call("/cosmos.auth.v1beta1.Query/Account", Buffer.from(`\n+${faucetText}`))).bytes,
    );
    expect(account?.typeUrl).toBe("/cosmos.auth.v1beta1.BaseAccount");
    expect(BaseAccount.decode(account?.value ?? new Uint8Array(0)).sequence).toBe(3n);
  });

  it("answers for the height in the metadata, and says it", async () => {
    const request = QueryBalanceRequest.fromPartial({ address: receiverText, denom: "atoken" });
    const bytes = QueryBalanceRequest.encode(request).finish();
    const path = "/cosmos.bank.v1beta1.Query/Balance";
    const past = await call(path, bytes, { "x-cosmos-block-height": "1" });
    expect(QueryBalanceResponse.decode(past.bytes).balance?.amount).toBe("12");
    expect(past.height).toBe("1");
    for (const wrong of ["4", "-1", "x"]) {
      const refused = call(path, bytes, { "x-cosmos-block-height": wrong });
      await expect(refused).rejects.toMatchObject({ code: grpc.status.INVALID_ARGUMENT });
    }
  });

  it("refuses with the codes of gRPC", async () => {
    const account = "/cosmos.auth.v1beta1.Query/Account";
    const bech32 = (text: string) =>
      Buffer.concat([Buffer.from([10, text.length]), Buffer.from(text)]);
    await expect(call(account, bech32(nobody))).rejects.toMatchObject({
      code: grpc.status.NOT_FOUND,
      details: `account ${nobody} not found`,
    });
    for (const wrong of [bech32("addr1nothing"), Buffer.from([255, 255]), Buffer.alloc(0)]) {
      const refused = call(account, wrong);
      await expect(refused).rejects.toMatchObject({ code: grpc.status.INVALID_ARGUMENT });
    }
    for (const path of ["/cosmos.authz.v1beta1.Query/Grants", "/cosmos.gov.v1.Query/Proposal"]) {
      await expect(call(path)).rejects.toMatchObject({ code: grpc.status.UNIMPLEMENTED });
    }
    const absent = {
      "authz.v1beta1.Query/GranterGrants": "x/authz: every account signs its own messages",
      "feegrant.v1beta1.Query/Allowance": "x/feegrant: who signs pays, so leave fee.granter",
    };
    for (const [path, words] of Object.entries(absent)) {
      const details = expect.stringContaining(`this chain has no ${words}`);
      await expect(call(`/cosmos.${path}`)).rejects.toMatchObject({ code: 12, details });
    }
  });

  it("serves blocks and transactions", async () => {
    const { bytes } = await call("/cosmos.base.tendermint.v1beta1.Service/GetLatestBlock");
    const latest = GetLatestBlockResponse.decode(bytes);
    expect(latest.block?.header?.height).toBe(3n);
    expect(latest.block?.data?.txs).toHaveLength(1);
    expect(latest.sdkBlock?.header?.proposerAddress).toMatch(/^addrvalcons1/);
    const own = await client.getBlock(3);
    expect(
      Buffer.from(latest.blockId?.hash ?? [])
        .toString("hex")
        .toUpperCase(),
    ).toBe(own.id);
    const hash = Buffer.from(`\n@${sdkHash}`);
    const found = GetTxResponse.decode(
      (await call("/cosmos.tx.v1beta1.Service/GetTx", hash)).bytes,
    );
    expect(found.txResponse).toMatchObject({ txhash: sdkHash, height: 1n, code: 0 });
    expect(found.tx?.body?.messages.map(({ typeUrl }) => typeUrl)).toEqual([
      "/cosmos.evm.vm.v1.MsgEthereumTx",
    ]);
    const filter = `transfer.amount='5atoken'`;
    const query = Buffer.concat([Buffer.from([50, filter.length]), Buffer.from(filter)]);
    const search = await call("/cosmos.tx.v1beta1.Service/GetTxsEvent", query);
    expect(GetTxsEventResponse.decode(search.bytes).total).toBe(2n);
  });
});

describe("gRPC reflection", () => {
  const types = () => chain.queries.types;

  /** Asks in one stream and gives the answers in order. */
  function reflect(version: string, questions: readonly Record<string, string>[]) {
    const scope = `grpc.reflection.${version}`;
    const input = types().message(`${scope}.ServerReflectionRequest`);
    const output = types().message(`${scope}.ServerReflectionResponse`);
    const stream = rpc.makeBidiStreamRequest(
      `/${scope}.ServerReflection/ServerReflectionInfo`,
      (value: Record<string, string>) => encodeMessage(input, value),
      (bytes: Buffer) => new MessageReader(decodeMessage(output, bytes)),
    );
    return new Promise<MessageReader[]>((resolve, reject) => {
      const answers: MessageReader[] = [];
      stream.on("data", (answer: MessageReader) => answers.push(answer));
      stream.on("end", () => resolve(answers));
      stream.on("error", reject);
      for (const question of questions) stream.write(question);
      stream.end();
    });
  }

  it.each(["v1", "v1alpha"])(
    "gives %s clients every service with all it needs",
    async (version) => {
      const [listed] = await reflect(version, [{ list_services: "" }]);
      const names = (
        (listed?.submessage("list_services_response").value["service"] ?? []) as { name: string }[]
      ).map(({ name }) => name);
      expect(names).toContain("cosmos.bank.v1beta1.Query");
      expect(names).toContain(`grpc.reflection.${version}.ServerReflection`);
      const answers = await reflect(
        version,
        names.map((name) => ({ file_containing_symbol: name })),
      );
      const files = new Map<string, FileDescriptorProto>();
      for (const answer of answers) {
        const given = answer.submessage("file_descriptor_response").value["file_descriptor_proto"];
        for (const bytes of (given ?? []) as Uint8Array[]) {
          const file = FileDescriptorProto.decode(bytes);
          files.set(file.name, file);
        }
      }
      // Every service is defined, every import is there, every type that is named is defined.
      const defined = new Set<string>();
      for (const file of files.values()) {
        const add = (scope: string, message: FileDescriptorProto["messageType"][number]) => {
          defined.add(`.${scope}.${message.name}`);
          for (const one of message.enumType) defined.add(`.${scope}.${message.name}.${one.name}`);
          for (const one of message.nestedType) add(`${scope}.${message.name}`, one);
        };
        for (const message of file.messageType) add(file.package, message);
        for (const one of file.enumType) defined.add(`.${file.package}.${one.name}`);
      }
      for (const name of names) {
        const file = [...files.values()].find((one) =>
          one.service.some((service) => `${one.package}.${service.name}` === name),
        );
        expect([name, file !== undefined]).toEqual([name, true]);
      }
      for (const file of files.values()) {
        expect(file.dependency.filter((name) => !files.has(name))).toEqual([]);
        for (const service of file.service) {
          for (const { inputType, outputType } of service.method) {
            expect([inputType, outputType].filter((name) => !defined.has(name))).toEqual([]);
          }
        }
      }
    },
  );

  it("says what it does not have", async () => {
    const [file, symbol, extensions, extension] = await reflect("v1", [
      { file_by_filename: "nope.proto" },
      { file_containing_symbol: "nope.Nope" },
      { all_extension_numbers_of_type: "google.protobuf.MethodOptions" },
      { file_by_filename: "gogoproto/gogo.proto" },
    ]);
    expect(file?.submessage("error_response").number("error_code")).toBe(5);
    expect(symbol?.submessage("error_response").number("error_code")).toBe(5);
    const numbers = extensions?.submessage("all_extension_numbers_response").value;
    expect(numbers?.["extension_number"]).toContain(72_295_728);
    expect(extension?.has("file_descriptor_response")).toBe(true);
  });
});

describe("REST", () => {
  it("answers as the SDK's gateway does", async () => {
    const balances = await get(`/cosmos/bank/v1beta1/balances/${receiverText}`);
    expect(balances.body).toEqual({
      balances: [{ denom: "atoken", amount: "17" }],
      pagination: { next_key: null, total: "1" },
    });
    expect(balances.headers.get("x-cosmos-block-height")).toBe("3");
    expect((await get(`/cosmos/auth/v1beta1/accounts/${faucetText}`)).body).toEqual({
      account: {
        "@type": "/cosmos.auth.v1beta1.BaseAccount",
        address: faucetText,
        pub_key: null,
        account_number: "0",
        sequence: "3",
      },
    });
    const total = chain.ports.view.supply(3)?.totalAtoken.toString();
    const coin = { denom: "atoken", amount: total };
    for (const path of ["supply/atoken", "supply/by_denom?denom=atoken"]) {
      expect((await get(`/cosmos/bank/v1beta1/${path}`)).body).toEqual({ amount: coin });
    }
    expect((await get("/cosmos/bank/v1beta1/supply")).body).toMatchObject({ supply: [coin] });
    expect((await get("/cosmos/mint/v1beta1/inflation")).body).toEqual({
      inflation: "0.120000000000000000",
    });
    const supply = { height: "3", total, burned: "0", locked: "0", circulating: total };
    expect((await get("/causeway/supply/v1")).body).toEqual(supply);
  });

  it("answers for the height in the header", async () => {
    const path = `/cosmos/bank/v1beta1/balances/${receiverText}/by_denom?denom=atoken`;
    const past = await get(path, { "x-cosmos-block-height": "1" });
    expect(past.body).toEqual({ balance: { denom: "atoken", amount: "12" } });
    expect(past.headers.get("x-cosmos-block-height")).toBe("1");
    const future = await get(path, { "x-cosmos-block-height": "9" });
    expect(future).toMatchObject({ status: 400, body: { code: 3, details: [] } });
  });

  it("refuses in the form of the SDK", async () => {
    const missing = `rpc error: code = NotFound desc = account ${nobody} not found: key not found`;
    expect(await get(`/cosmos/auth/v1beta1/accounts/${nobody}`)).toMatchObject({
      status: 404,
      body: { code: 5, message: missing, details: [] },
    });
    for (const path of [
      "/cosmos/auth/v1beta1/accounts/cosmos1qypqxpq9qcrsszg2pvxq6rs0zqg3yyc5lzv7xu",
      "/cosmos/bank/v1beta1/supply/by_denom",
      "/cosmos/bank/v1beta1/supply?pagination.limit=1001",
      "/cosmos/bank/v1beta1/supply?pagination.key=AA==&pagination.offset=1",
      "/cosmos/base/tendermint/v1beta1/blocks/0",
      "/cosmos/base/tendermint/v1beta1/blocks/4",
      "/cosmos/base/tendermint/v1beta1/blocks/x",
      "/cosmos/tx/v1beta1/txs",
      "/cosmos/tx/v1beta1/txs?events=nonsense",
      "/cosmos/tx/v1beta1/txs/nonsense",
      "/cosmos/tx/v1beta1/txs/%zz",
    ]) {
      expect([path, await get(path)]).toMatchObject([path, { status: 400, body: { code: 3 } }]);
    }
    const unknown = await get(`/cosmos/tx/v1beta1/txs/${"AB".repeat(32)}`);
    const text = `tx not found: ${"AB".repeat(32)}`;
    expect(unknown).toMatchObject({ status: 404, body: { code: 5, message: text } });
    for (const path of ["/", "/nope", "/cosmos/authz/v1beta1/grants"]) {
      const message = expect.stringMatching(
        path.includes("authz")
          ? /^Not Implemented: this chain has no x\/authz: /
          : /^Not Implemented$/,
      );
      const body = { code: 12, message, details: [] };
      expect(await get(path)).toMatchObject({ status: 501, body });
    }
    expect(await post("/cosmos/bank/v1beta1/supply", {})).toMatchObject({ status: 501 });
    expect(await post("/cosmos/tx/v1beta1/txs", "{")).toMatchObject({ status: 400 });
    expect(await post("/cosmos/tx/v1beta1/txs", `"${"x".repeat(200_000)}"`)).toMatchObject({
      status: 413,
    });
  });

  it("finds transactions by both generations of filters, with a raw &", async () => {
    const txs = "/cosmos/tx/v1beta1/txs";
    const hashes = async (search: string) => {
      const { body } = await get(`${txs}?${search}`);
      const { tx_responses, total, pagination } = body as {
        tx_responses: { txhash: string; height: string; events: unknown[] }[];
        total: string;
        pagination: { total: string };
      };
      expect(pagination.total).toBe(total);
      expect(tx_responses.every(({ events }) => events.length > 0)).toBe(true);
      return { total, heights: tx_responses.map(({ height }) => height) };
    };
    const sender = `transfer.sender='${faucetText}'`;
    expect(await hashes(`events=${sender}`)).toEqual({ total: "3", heights: ["1", "1", "3"] });
    const both = { total: "2", heights: ["1", "3"] };
    expect(await hashes(`events=${sender}&transfer.amount='5atoken'`)).toEqual(both);
    expect(await hashes(`events=${sender}&events=transfer.amount='5atoken'`)).toEqual(both);
    const query = encodeURIComponent(`${sender} AND transfer.amount='5atoken'`);
    expect(await hashes(`query=${query}`)).toEqual(both);
    const newest = { total: "3", heights: ["3", "1"] };
    expect(await hashes(`events=${sender}&order_by=ORDER_BY_DESC&limit=2`)).toEqual(newest);
    const old = `events=${sender}&pagination.offset=2&pagination.limit=2&order_by=2`;
    expect(await hashes(old)).toEqual({ total: "3", heights: ["1"] });
    expect(await hashes(`events=${sender}&page=2&limit=2`)).toEqual({ total: "3", heights: ["3"] });
    expect(await hashes("events=message.module='bank'")).toMatchObject({ total: "3" });
  });

  it("shows a transaction by either hash", async () => {
    const { body } = await get(`/cosmos/tx/v1beta1/txs/${sdkHash}`);
    expect(body).toMatchObject({
      tx: {
        body: {
          messages: [
            {
              "@type": "/cosmos.evm.vm.v1.MsgEthereumTx",
              from: Buffer.from(faucet.address.slice(2), "hex").toString("base64"),
              raw: expect.stringMatching(/^0x[0-9a-f]+$/),
            },
          ],
          extension_options: [{ "@type": "/cosmos.evm.vm.v1.ExtensionOptionsEthereumTx" }],
        },
        auth_info: {
          signer_infos: [],
          fee: { amount: [{ denom: "atoken", amount: "525000000000" }], gas_limit: "21000" },
        },
        signatures: [],
      },
      tx_response: {
        height: "1",
        txhash: sdkHash,
        code: 0,
        gas_used: "21000",
        tx: { "@type": "/cosmos.tx.v1beta1.Tx" },
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      },
    });
    for (const hash of [sdkHash.toLowerCase(), evmHash, `0x${sdkHash}`]) {
      expect((await get(`/cosmos/tx/v1beta1/txs/${hash}`)).body).toEqual(body);
    }
    const block = await get(
      "/cosmos/tx/v1beta1/txs/block/1?pagination.limit=1&pagination.offset=1",
    );
    expect(block.body).toMatchObject({ txs: [{}], pagination: { total: "2" } });
  });

  it("takes transactions, and decodes and encodes them", async () => {
    const tx_bytes = Buffer.from(sdkTx).toString("base64");
    const decoded = await post("/cosmos/tx/v1beta1/decode", { tx_bytes });
    const { tx } = decoded.body as { tx: unknown };
    expect(await post("/cosmos/tx/v1beta1/encode", { tx })).toEqual({
      status: 200,
      body: { tx_bytes },
    });
    const next = Buffer.from(wrap(await send(3, 1n))).toString("base64");
    const mode = "BROADCAST_MODE_SYNC";
    const taken = await post("/cosmos/tx/v1beta1/txs", { tx_bytes: next, mode });
    expect(taken).toMatchObject({ status: 200, body: { tx_response: { code: 0, height: "0" } } });
    const { txhash } = (taken.body as { tx_response: { txhash: string } }).tx_response;
    const again = await post("/cosmos/tx/v1beta1/txs", { tx_bytes: next, mode });
    const known = { code: 19, codespace: "sdk", txhash };
    expect(again).toMatchObject({ status: 200, body: { tx_response: known } });
    // What a block has is known as well; only other bytes of its sequence are stale.
    const mined = await post("/cosmos/tx/v1beta1/txs", { tx_bytes, mode });
    expect(mined).toMatchObject({ status: 200, body: { tx_response: { code: 19 } } });
    const other = Buffer.from(wrap(await send(0, 99n))).toString("base64");
    const stale = await post("/cosmos/tx/v1beta1/txs", { tx_bytes: other, mode });
    expect(stale).toMatchObject({ status: 200, body: { tx_response: { code: 3 } } });
    const garbage = await post("/cosmos/tx/v1beta1/txs", { tx_bytes: "AAAA", mode });
    expect(garbage).toMatchObject({ status: 200, body: { tx_response: { code: 2 } } });
  });

  it("lets only listed pages read, and shows its routes itself", async () => {
    const path = "/cosmos/bank/v1beta1/params";
    const allowed = await get(path, { Origin: "https://wallet.example" });
    expect(allowed.headers.get("access-control-allow-origin")).toBe("https://wallet.example");
    const other = await get(path, { Origin: "https://evil.example" });
    expect(other.headers.get("access-control-allow-origin")).toBeNull();
    const page = await fetch(`${base}/swagger/`);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(await page.text()).not.toMatch(/https?:\/\//);
    const { body } = await get("/swagger/openapi.json");
    const { paths } = body as { paths: Record<string, unknown> };
    const routes = chain.queries.all().flatMap(({ method }) => method.routes);
    expect(Object.keys(paths).length).toBeGreaterThan(40);
    expect(routes.every(({ template }) => template.replaceAll("=**", "") in paths)).toBe(true);
  });

  it("answers who asks too often with 429", async () => {
    const limited = await startRestServer({ ...restOptions(), requestsPerSecond: 1 });
    const origin = `http://127.0.0.1:${limited.address.port}`;
    const path = "/cosmos/bank/v1beta1/params";
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => get(path, {}, origin)));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]?.body).toMatchObject({ code: 8, details: [] });
    await limited.stop();
  });
});

describe("one registry", () => {
  it("answers the same on every face", async () => {
    const writer = new JsonWriter(chain.queries.types);
    const height = { "x-cosmos-block-height": "3" };
    let count = 0;
    for (const served of chain.queries.all()) {
      const { method, output } = served;
      const route = method.routes.find(
        ({ verb, template }) => verb === "GET" && !/\{/.test(template),
      );
      if (route === undefined || /GetTxsEvent|ABCIQuery|EthCall|EstimateGas/.test(method.name))
        continue;
      const expected = await call(method.path, undefined, height).catch((error: unknown) => error);
      const shown = await get(route.template, height);
      if (expected instanceof Error) {
        expect([method.path, shown.status]).not.toEqual([method.path, 200]);
        continue;
      }
      const { bytes } = expected as { bytes: Buffer };
      const params = { path: method.path, data: "", height: "3", prove: false };
      const reply = await fetch(chain.url, {
        method: "POST",
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "abci_query", params }),
      });
      const { result } = (await reply.json()) as { result: { response: { value: string } } };
      expect([method.path, result.response.value ?? ""]).toEqual([
        method.path,
        bytes.toString("base64"),
      ]);
      const json: unknown = JSON.parse(writer.text(output, decodeMessage(output, bytes)));
      expect([method.path, shown.body]).toEqual([method.path, json]);
      count += 1;
    }
    expect(count).toBeGreaterThan(20);
  });

  it("is asked by the command line with the SDK's flags", async () => {
    const run = async (...words: readonly string[]) => {
      const lines: string[] = [];
      let code = 0;
      const program = createProgram({
        version: "0",
        env: {},
        signal: new AbortController().signal,
        print: (line) => lines.push(line),
        warn: (line) => lines.push(line),
        setExitCode: (given) => {
          code = given;
        },
      });
      const node = chain.url.replace("http:", "tcp:");
      await program.parseAsync(["node", "causeway", "query", ...words, "--node", node]);
      expect(code).toBe(0);
      return lines;
    };
    const json = async (...words: readonly string[]): Promise<unknown> =>
      JSON.parse((await run(...words, "--output", "json")).join(""));
    expect(await json("bank", "balances", receiverText)).toEqual(
      (await get(`/cosmos/bank/v1beta1/balances/${receiverText}`)).body,
    );
    expect(
      await json("bank", "balances", receiverText, "--denom", "atoken", "--height", "1"),
    ).toEqual({
      balance: { denom: "atoken", amount: "12" },
    });
    expect(await json("tx", sdkHash)).toMatchObject({ txhash: sdkHash, code: 0 });
    const filter = `transfer.sender=${faucetText}&transfer.amount=5atoken`;
    expect(await json("txs", "--events", filter, "--limit", "1")).toMatchObject({
      total_count: "2",
      count: "1",
      page_number: "1",
      page_total: "2",
      limit: "1",
      txs: [{ txhash: sdkHash }],
    });
    expect(await json("txs", "--query", "tx.height=3")).toMatchObject({ total_count: "1" });
    expect(await json("block", "2")).toMatchObject({ block: { header: { height: "2" } } });
    expect(await json("supply")).toEqual((await get("/causeway/supply/v1")).body);
    const total = chain.ports.view.supply(3)?.totalAtoken;
    const text = ["amount:", "  denom: atoken", `  amount: "${total}"`];
    expect(await run("bank", "total", "--denom", "atoken")).toEqual(text);
    await expect(run("tx", "AB".repeat(32))).rejects.toThrow(/tx not found/);
    await expect(run("bank", "balances", "nonsense")).rejects.toThrow(/invalid address/);
    await expect(run("txs", "--events", "nonsense")).rejects.toThrow(/form/);
  });
});
