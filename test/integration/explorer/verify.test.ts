/**
 * "Verify in this browser", run as the browser runs it (the same files, Node's WebCrypto) against a
 * real node: what is true is proven, and whatever is changed on the way is not.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { keccak256 as ethersKeccak } from "ethers";
import { ExplorerStage, type Scene } from "../../helpers/pages/explorer.js";

type Json = Record<string, unknown>;

interface Source {
  header(height: number | string): Promise<Json>;
  headers(to: number): Promise<Json>;
}

interface Pin {
  readonly height: number;
  readonly hash: string;
}

/** The scripts have no types of their own: this is what the page calls. */
interface VerifyScript {
  readonly verifyProof: (
    proof: Json,
    pin: Pin,
    source: Source,
    expected: Json,
  ) => Promise<Record<string, string>>;
}

interface HeadersScript {
  readonly NothingToCheckWith: new () => Error;
}

interface KeccakScript {
  readonly keccak256: (bytes: Uint8Array) => Uint8Array;
}

const LIGHT = "../../../explorer/assets/light";
const { verifyProof }: VerifyScript = await import(`${LIGHT}/verify-proof.mjs`);
const { NothingToCheckWith }: HeadersScript = await import(`${LIGHT}/headers.mjs`);
const { keccak256 }: KeccakScript = await import(`${LIGHT}/keccak.mjs`);

let stage: ExplorerStage;
let scene: Scene;
let pin: Pin;
let source: Source;

async function json(target: string): Promise<Json> {
  const { status, text } = await stage.get(target);
  if (status !== 200) throw new Error(`${target}: ${status}`);
  return JSON.parse(text) as Json;
}

/** Height and hash of a header, from the node and not from the explorer. */
async function pinAt(height: number): Promise<Pin> {
  const answer = await fetch(`http://127.0.0.1:${26657 + stage.offset}/commit?height=${height}`);
  const { result } = (await answer.json()) as {
    result: { signed_header: { commit: { block_id: { hash: string } } } };
  };
  return { height, hash: result.signed_header.commit.block_id.hash.toLowerCase() };
}

const expected = (kind: string, subject: string): Json => ({
  chainId: "chain_6940-1",
  nowMs: Date.now(),
  kind,
  subject: subject.toLowerCase(),
});

/** A copy with one place changed. */
function changed(
  proof: Json,
  path: readonly (string | number)[],
  change: (old: unknown) => unknown,
) {
  const copy = structuredClone(proof);
  const holder = path.slice(0, -1).reduce<Json>((at, key) => at[key] as Json, copy);
  const last = path.at(-1) ?? "";
  holder[last] = change(holder[last]);
  return copy;
}

/** Another last hex digit or base64 character in the middle. */
const flipped = (text: unknown) => {
  const characters = String(text);
  const at = Math.floor(characters.length / 2);
  const other = characters.charAt(at) === "1" ? "2" : "1";
  return characters.slice(0, at) + other + characters.slice(at + 1);
};

beforeAll(async () => {
  stage = await ExplorerStage.open(1);
  scene = await stage.play();
  pin = await pinAt(2);
  source = {
    header: (height) => json(`/proof/header/${height}`),
    headers: (to) => json(`/proof/headers/${to}`),
  };
});

afterAll(async () => {
  await stage.close();
});

describe("the script's keccak-256", () => {
  it("is that of ethers, around the length of a block", () => {
    for (const length of [0, 1, 31, 32, 134, 135, 136, 137, 271, 272, 273, 1_000]) {
      const bytes = Uint8Array.from({ length }, (_, index) => (index * 7) % 256);
      const hex = `0x${Buffer.from(keccak256(bytes)).toString("hex")}`;
      expect({ length, hex }).toEqual({ length, hex: ethersKeccak(bytes) });
    }
  });
});

describe("an account", () => {
  it("is proven from the trusted header on, as the node's own RPC says", async () => {
    const proof = await json(`/proof/address/${scene.other}`);
    const proven = await verifyProof(proof, pin, source, expected("account", scene.other));
    expect(proven).toMatchObject({
      address: scene.other,
      balanceAtoken: "1500000000000000007",
      nonce: "0",
      height: String(proof["height"]),
    });
    const block = await stage.provider.getBlock(Number(proof["height"]));
    expect(proven["blockHash"]).toBe(block?.hash);
  });

  it("that is not there is proven to have nothing", async () => {
    const nobody = `0x${"5e".repeat(20)}`;
    const proof = await json(`/proof/address/${nobody}`);
    const proven = await verifyProof(proof, pin, source, expected("account", nobody));
    expect(proven).toMatchObject({ balanceAtoken: "0", nonce: "0" });
  });

  it("is proven below the trusted header, too", async () => {
    const height = scene.transfer.blockNumber;
    const proof = await json(`/proof/address/${scene.other}?height=${scene.plain.blockNumber}`);
    const above = await pinAt(height);
    const proven = await verifyProof(proof, above, source, expected("account", scene.other));
    expect(proven["balanceAtoken"]).toBe("1500000000000000000");
  });

  it("is not proven where anything was changed on the way", async () => {
    const proof = await json(`/proof/address/${scene.other}`);
    const header = ["commit", "signed_header", "header"];
    const commit = ["commit", "signed_header", "commit"];
    const changes: readonly (readonly [string, Json])[] = [
      ["balance", changed(proof, ["balance"], () => "9")],
      ["nonce", changed(proof, ["nonce"], () => "9")],
      ["address", changed(proof, ["address"], () => scene.sender.toLowerCase())],
      ["height", changed(proof, ["height"], (height) => Number(height) - 1)],
      ["chain", changed(proof, ["chainId"], () => "chain_6941-1")],
      ["evm header", changed(proof, ["header"], flipped)],
      ["proof", changed(proof, ["accountProof", 0], flipped)],
      ["shorter proof", changed(proof, ["accountProof"], (all) => (all as unknown[]).slice(0, -1))],
      ["no proof", changed(proof, ["accountProof"], () => [])],
      ["app hash", changed(proof, [...header, "app_hash"], flipped)],
      ["time", changed(proof, [...header, "time"], () => "2030-01-01T00:00:00Z")],
      ["validators hash", changed(proof, [...header, "validators_hash"], flipped)],
      ["signature", changed(proof, [...commit, "signatures", 0, "signature"], flipped)],
      ["no signature", changed(proof, [...commit, "signatures", 0, "block_id_flag"], () => 1)],
      ["block id", changed(proof, [...commit, "block_id", "hash"], flipped)],
      ["round", changed(proof, [...commit, "round"], (round) => Number(round) + 1)],
      ["power", changed(proof, ["validators", 0, "validators", 0, "voting_power"], () => "99")],
      ["key", changed(proof, ["validators", 0, "validators", 0, "pub_key", "value"], flipped)],
      ["nothing", {}],
    ];
    for (const [what, lie] of changes) {
      const outcome = await verifyProof(lie, pin, source, expected("account", scene.other)).then(
        () => "PROVEN",
        (error: unknown) => (error as Error).constructor.name,
      );
      expect({ what, outcome }).toEqual({ what, outcome: "NotProven" });
    }
  });

  it("is not proven from another header than the trusted one, or one that is too old", async () => {
    const proof = await json(`/proof/address/${scene.other}`);
    const about = expected("account", scene.other);
    const wrong = { height: pin.height, hash: "ab".repeat(32) };
    await expect(verifyProof(proof, wrong, source, about)).rejects.toThrow(
      "the trusted header does not have the trusted hash",
    );
    const late = { ...about, nowMs: Date.now() + 8 * 86_400_000 };
    await expect(verifyProof(proof, pin, source, late)).rejects.toThrow("older than a week");
    const early = { ...about, nowMs: Date.now() - 86_400_000 };
    await expect(verifyProof(proof, pin, source, early)).rejects.toThrow("from the future");
  });

  it("is neither proven nor refuted by a browser that has nothing to check with", async () => {
    const proof = await json(`/proof/address/${scene.other}`);
    const about = expected("account", scene.other);
    const { crypto } = globalThis;
    const importKey = () => Promise.reject(new DOMException("unknown", "NotSupportedError"));
    const digest = crypto.subtle.digest.bind(crypto.subtle);
    for (const subtle of [undefined, { digest, importKey }]) {
      Object.defineProperty(globalThis, "crypto", { value: { subtle }, configurable: true });
      try {
        await expect(verifyProof(proof, pin, source, about)).rejects.toBeInstanceOf(
          NothingToCheckWith,
        );
      } finally {
        Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true });
      }
    }
    await verifyProof(proof, pin, source, about);
  });

  it("is not proven by a chain of validators that somebody made up", async () => {
    const proof = await json(`/proof/address/${scene.other}`);
    // Validators of its own choosing, with a header that names them, signed by nobody we trust.
    const stranger: Source = {
      ...source,
      header: async (height) =>
        changed(await source.header(height), ["validators", 0, "validators"], () => []),
    };
    await expect(
      verifyProof(proof, pin, stranger, expected("account", scene.other)),
    ).rejects.toThrow("these are not its validators");
  });
});

describe("a transaction", () => {
  it("is proven with its outcome", async () => {
    for (const [receipt, status] of [
      [scene.transfer, "success"],
      [scene.failed, "failed"],
    ] as const) {
      const proof = await json(`/proof/tx/${receipt.hash}`);
      const proven = await verifyProof(proof, pin, source, expected("transaction", receipt.hash));
      expect(proven).toMatchObject({
        transaction: receipt.hash,
        status,
        height: String(receipt.blockNumber),
        blockHash: receipt.blockHash,
        index: String(receipt.index),
        logs: String(receipt.logs.length),
      });
    }
  });

  it("is not proven by other receipts, another block or another hash", async () => {
    const { hash } = scene.failed;
    const proof = await json(`/proof/tx/${hash}`);
    const other = await json(`/proof/tx/${scene.transfer.hash}`);
    const lies: readonly (readonly [string, Json])[] = [
      ["receipts", changed(proof, ["receipts"], () => other["receipts"])],
      ["one receipt", changed(proof, ["receipts", 0], flipped)],
      ["no receipts", changed(proof, ["receipts"], () => [])],
      ["block", changed(proof, ["block"], flipped)],
      ["another block", changed(proof, ["block"], () => other["block"])],
      ["another proof", other],
    ];
    for (const [what, lie] of lies) {
      const outcome = await verifyProof(lie, pin, source, expected("transaction", hash)).then(
        () => "PROVEN",
        (error: unknown) => (error as Error).constructor.name,
      );
      expect({ what, outcome }).toEqual({ what, outcome: "NotProven" });
    }
  });
});
