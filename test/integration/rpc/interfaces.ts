/** REST, gRPC and CosmJS' client over one chain. */
import { StargateClient } from "@cosmjs/stargate";
import * as grpc from "@grpc/grpc-js";
import { Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { encodeSdkTransaction } from "../../../chain/consensus/sdk-transaction.js";
import { sha256 } from "../../../chain/hashes.js";
import { parseHexBytes } from "../../../chain/hex.js";
import { decodeTransaction, recoverSender } from "../../../chain/transaction.js";
import { createClientMemory } from "../../../node/rpc/client-memory.js";
import { startGrpcServer } from "../../../node/rpc/grpc/server.js";
import type { RpcServer } from "../../../node/rpc/http-listener.js";
import { type RestServerOptions, startRestServer } from "../../../node/rpc/rest/server.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { CometTestChain } from "../../helpers/chains/comet-chain.js";

const log = createLogger({ component: "test", level: "silent" });
const LOOPBACK = { host: "127.0.0.1", port: 0 };
/** Who has the coins of the genesis. */
export const faucet = new Wallet(`0x${"41".repeat(32)}`);
/** Who gets 5, 7 and 5 atoken. */
export const receiver = new Wallet(`0x${"42".repeat(32)}`);
/** The faucet, bech32. */
export const faucetText = toBech32(parseAddress(faucet.address));
/** The receiver, bech32. */
export const receiverText = toBech32(parseAddress(receiver.address));
/** An account that does not exist, bech32. */
export const nobody = toBech32(parseAddress(`0x${"77".repeat(20)}`));

/** The chain behind all faces. */
export let chain: CometTestChain;
let rest: RpcServer;
let server: RpcServer;
/** CosmJS over CometBFT's RPC. */
export let client: StargateClient;
/** Where REST is served. */
export let base: string;
/** A gRPC channel to the chain. */
export let rpc: grpc.Client;
/** The first transfer as the SDK writes it. */
export let sdkTx: Uint8Array;
/** Its hash in CometBFT's form, upper case. */
export let sdkHash: string;
/** Its hash in Ethereum's form. */
export let evmHash: string;

/** A transfer of the faucet's, signed, 0x hex. */
export function send(nonce: number, valueAtoken: bigint): Promise<string> {
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

/** An EVM transaction as the SDK writes it. */
export function wrap(raw: string): Uint8Array {
  const tx = decodeTransaction(parseHexBytes(raw));
  return encodeSdkTransaction(tx, recoverSender(tx));
}

/** How REST is served to these tests. */
export function restOptions(): RestServerOptions {
  return {
    listen: LOOPBACK,
    queries: chain.queries,
    allowedOrigins: ["https://wallet.example"],
    isSwaggerServed: true,
    maxConnections: 100,
    maxBodyBytes: 100_000,
    requestsPerSecond: 0,
    memory: createClientMemory(systemClock),
    clock: systemClock,
    log,
  };
}

/** A GET at REST. */
export async function get(path: string, headers: Record<string, string> = {}, origin = base) {
  const reply = await fetch(`${origin}${path}`, { headers });
  const body: unknown = await reply.json();
  return { status: reply.status, headers: reply.headers, body };
}

/** A POST at REST; texts are sent as they are. */
export async function post(path: string, body: unknown) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const reply = await fetch(`${base}${path}`, { method: "POST", body: text });
  const answer: unknown = await reply.json();
  return { status: reply.status, body: answer };
}

/** A unary call with bytes in and out. */
export function call(
  path: string,
  request: Uint8Array = new Uint8Array(0),
  headers: Record<string, string> = {},
  to: grpc.Client = rpc,
): Promise<{ readonly bytes: Buffer; readonly height: string | undefined }> {
  const metadata = new grpc.Metadata();
  for (const [key, value] of Object.entries(headers)) metadata.set(key, value);
  const same = (bytes: Buffer) => bytes;
  return new Promise((resolve, reject) => {
    let height: string | undefined;
    const unary = to.makeUnaryRequest(
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

/** Opens the chain with three transfers in three blocks, and its servers. */
export async function openInterfaces(): Promise<void> {
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
    maxConnections: 100,
    requestsPerSecond: 0,
    clock: systemClock,
    log,
  });
  base = `http://127.0.0.1:${rest.address.port}`;
  rpc = new grpc.Client(`127.0.0.1:${server.address.port}`, grpc.credentials.createInsecure());
  client = await StargateClient.connect(chain.url);
}

/** Closes what `openInterfaces` opened. */
export async function closeInterfaces(): Promise<void> {
  client.disconnect();
  rpc.close();
  await rest.stop();
  await server.stop();
  await chain.close();
}
