/**
 * The bytes of seeded intents (native, with calldata, ERC-20) against those of ethers, viem and
 * `cast mktx --legacy`, and every way back from bytes to the intent. CAUSEWAY_INTENTS sets how many.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@jest/globals";
import { getAddress, Interface, SigningKey, Transaction, Wallet } from "ethers";
import { serializeTransaction } from "viem";
import { createRandom } from "../../../helpers/random.js";
import { ask } from "./handlers.js";
import { pair, signatureOf } from "./steps.js";
import { CURRENCY, GOLD, SILVER } from "../../../helpers/chains/known-tokens.js";

const SEED = 20_261_120;
const ROUNDS = Number(process.env["CAUSEWAY_INTENTS"] ?? 1_000);
const CAST = fileURLToPath(
  new URL("../../../../node_modules/@foundry-rs/cast-linux-amd64/bin/cast", import.meta.url),
);
/** Shells at once: one for each core of a small machine. */
const SHELLS = 2;

/** More than 300 bytes of calldata cost before any code: with less no transaction is built. */
const ENOUGH_GAS = 30_000n;

const ERC20 = new Interface(["function transfer(address to, uint256 amount)"]);
const random = createRandom(SEED);
const hex = (bytes: number) => Buffer.from(random.bytes(bytes)).toString("hex");

/** A number of a random size: small ones, round ones and huge ones all occur. */
function upTo(bits: number): bigint {
  const size = random.integer(bits + 1);
  return size === 0 ? 0n : BigInt(`0x${hex(32)}`) >> BigInt(256 - size);
}

function drawIntent(round: number) {
  const kind = (["native", "calldata", "token"] as const)[round % 3] ?? "native";
  const privateKey = `0x${hex(32)}`;
  return {
    round,
    kind,
    privateKey,
    from: new Wallet(privateKey).address,
    to: getAddress(`0x${hex(20)}`),
    value: upTo(256),
    currency: kind === "token" ? random.pick([GOLD, SILVER]) : CURRENCY,
    data: kind === "calldata" ? `0x${hex(1 + random.integer(300))}` : "0x",
    // ethers and viem take nonces as numbers; cast takes prices below 2^128.
    nonce: upTo(53),
    gasPrice: upTo(120),
    gasLimit: ENOUGH_GAS + upTo(63),
  };
}

type Drawn = ReturnType<typeof drawIntent>;

/** The same transaction as ethers means it. */
function ethersTransaction(drawn: Drawn): Transaction {
  const { to, value, currency, data, nonce, gasPrice, gasLimit } = drawn;
  const contract = currency.metadata?.contractAddress;
  return Transaction.from({
    type: 0,
    chainId: 6940n,
    nonce: Number(nonce),
    gasPrice,
    gasLimit,
    to: contract ?? to,
    value: contract === undefined ? value : 0n,
    data: contract === undefined ? data : ERC20.encodeFunctionData("transfer", [to, value]),
  });
}

/** The same transaction as viem writes it. */
function viemBytes(expected: Transaction): string {
  const { signature, to, data } = expected;
  return serializeTransaction(
    {
      type: "legacy",
      chainId: Number(expected.chainId),
      nonce: expected.nonce,
      gasPrice: expected.gasPrice ?? 0n,
      gas: expected.gasLimit,
      to: to as `0x${string}`,
      value: expected.value,
      data: data as `0x${string}`,
    },
    {
      r: signature?.r as `0x${string}`,
      s: signature?.s as `0x${string}`,
      v: 35n + 2n * expected.chainId + BigInt(signature?.yParity ?? 0),
    },
  );
}

/** `cast mktx` with what a person would type for an intent. */
function castCommand(drawn: Drawn): string {
  const { to, value, currency, data, privateKey } = drawn;
  const contract = currency.metadata?.contractAddress;
  const [callee, call] =
    contract === undefined
      ? [to, data === "0x" ? "" : data]
      : [contract, `'transfer(address,uint256)' ${to} ${value}`];
  const sent = contract === undefined ? value : 0n;
  const gas = `--gas-price ${drawn.gasPrice} --gas-limit ${drawn.gasLimit}`;
  return (
    `'${CAST}' mktx --legacy --private-key ${privateKey} --chain 6940 --nonce ${drawn.nonce} ` +
    `${gas} --value ${sent} ${callee} ${call}`
  );
}

/** Output lines of commands, run one after the other by a shell: forking this process is dear. */
async function runInShell(commands: readonly string[]): Promise<string[]> {
  // In a folder with node_modules cast looks for remappings at every start.
  const shell = spawn("/bin/sh", ["-e"], { cwd: tmpdir(), stdio: "pipe" });
  shell.stderr.pipe(process.stderr);
  shell.stdin.end(`${commands.join("\n")}\n`);
  let output = "";
  shell.stdout.setEncoding("utf8");
  for await (const chunk of shell.stdout) output += String(chunk);
  return output.trim().split("\n");
}

/** From the intent to signed bytes, with every reading on the way. */
async function construct(drawn: Drawn): Promise<string> {
  const { round, from, to, value, currency } = drawn;
  const key = new SigningKey(drawn.privateKey);
  const operations = pair(from, to, value, currency);
  const metadata = {
    chain_id: "6940",
    nonce: drawn.nonce.toString(),
    gas_price: drawn.gasPrice.toString(),
    gas_limit: drawn.gasLimit.toString(),
    ...(drawn.kind === "calldata" ? { data: drawn.data } : {}),
  };
  const expected = ethersTransaction(drawn);
  const { unsigned_transaction, payloads } = await ask("payloads", { operations, metadata });
  expect({ round, digest: payloads[0].hex_bytes }).toEqual({
    round,
    digest: expected.unsignedHash.slice(2),
  });
  const wrapper = await ask("parse", { signed: false, transaction: unsigned_transaction });
  const { signed_transaction } = await ask("combine", {
    unsigned_transaction,
    signatures: [signatureOf(key, payloads[0])],
  });
  expected.signature = key.sign(expected.unsignedHash);
  expect({ round, raw: signed_transaction }).toEqual({ round, raw: expected.serialized });
  expect({ round, raw: signed_transaction }).toEqual({ round, raw: viemBytes(expected) });
  const bare = await ask("parse", { signed: true, transaction: expected.serialized.slice(2) });
  expect({ round, operations: bare.operations }).toEqual({ round, operations });
  expect({ round, operations: wrapper.operations }).toEqual({ round, operations });
  expect(bare.account_identifier_signers).toEqual([{ address: from }]);
  expect(wrapper.account_identifier_signers).toEqual([]);
  expect(wrapper.metadata).toEqual(bare.metadata);
  // What parse told suffices to build the same bytes again.
  const { memo: _memo, ...facts } = bare.metadata;
  const again = await ask("payloads", { operations: bare.operations, metadata: facts });
  expect({ round, again: again.payloads }).toEqual({ round, again: payloads });
  const { transaction_identifier } = await ask("hash", { signed_transaction });
  expect({ round, hash: transaction_identifier.hash }).toEqual({ round, hash: expected.hash });
  return signed_transaction;
}

describe(`${ROUNDS} intents (seed ${SEED}), built offline`, () => {
  const drawn = Array.from({ length: ROUNDS }, (_, round) => drawIntent(round));
  const signed: string[] = [];

  it("come out as ethers and viem build them, and read back to the intent", async () => {
    for (const intent of drawn) signed.push(await construct(intent));
    expect(signed).toHaveLength(ROUNDS);
  });

  it("come out as cast signs them", async () => {
    if (!existsSync(CAST)) {
      // Only where the optional binary is not made for this machine; the first test has run.
      process.stdout.write(`skipped: cast is not installed (${CAST})\n`);
      expect(signed).toHaveLength(ROUNDS);
      return;
    }
    const shells = Array.from({ length: SHELLS }, (_, lane) =>
      drawn.filter(({ round }) => round % SHELLS === lane),
    );
    const outputs = await Promise.all(
      shells.map((intents) => runInShell(intents.map(castCommand))),
    );
    for (const { round } of drawn) {
      const raw = outputs[round % SHELLS]?.[Math.floor(round / SHELLS)];
      expect({ round, raw }).toEqual({ round, raw: signed[round] });
    }
  });
});
