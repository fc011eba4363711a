/** The signer's rules: the table of CometBFT 0.38.17's privval/file_test.go, and its own files. */
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { VOTE_TYPE, type VoteContent, voteSignBytes } from "../../../chain/consensus/vote.js";
import { bytesToHex, type Hash32 } from "../../../chain/hex.js";
import { verifySignature } from "../../../chain/consensus/ed25519.js";
import { PrivateValidator } from "../../../node/consensus/signing/private-validator.js";

const CHAIN_ID = "chain_6940-1";

/** Files and a signature made by CometBFT's own Go code. */
const vectors = JSON.parse(
  fs.readFileSync(new URL("../../fixtures/consensus/cometbft-state.json", import.meta.url), "utf8"),
) as { keyFile: string; stateFile: string; voteSignature: string };

const hashOf = (byte: string) => `0x${byte.repeat(32)}` as Hash32;
const block1 = { hash: hashOf("a1"), parts: { total: 5, hash: hashOf("a1") } };
const block2 = { hash: hashOf("b2"), parts: { total: 10, hash: hashOf("b2") } };

let folder = "";
let files = { keyFile: "", stateFile: "", chainId: CHAIN_ID };

beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-signer-"));
  files = {
    keyFile: path.join(folder, "key.json"),
    stateFile: path.join(folder, "state.json"),
    chainId: CHAIN_ID,
  };
  fs.writeFileSync(files.keyFile, vectors.keyFile);
});

afterEach(() => fs.rmSync(folder, { recursive: true, force: true }));

const prevote = (change: Partial<VoteContent> = {}): VoteContent => ({
  type: VOTE_TYPE.prevote,
  height: 10,
  round: 1,
  blockId: block1,
  timeNs: 1_700_000_000_123_456_789n,
  ...change,
});

const stateFile = () => JSON.parse(fs.readFileSync(files.stateFile, "utf8"));

describe("the signer", () => {
  it("has CometBFT's key, signs its bytes and writes its state file", async () => {
    const signer = await PrivateValidator.open(files);
    const { address, pub_key: publicKey } = JSON.parse(vectors.keyFile);
    expect(signer.address.slice(2).toUpperCase()).toBe(address);
    const hash = bytesToHex(Uint8Array.from({ length: 32 }, (_, index) => index)) as Hash32;
    const vote: VoteContent = {
      type: VOTE_TYPE.precommit,
      height: 36,
      round: 2,
      blockId: { hash, parts: { total: 5, hash } },
      timeNs: 1_700_000_000_123_456_789n,
    };
    const { signature } = await signer.signVote(vote);
    expect(Buffer.from(signature).toString("hex")).toBe(vectors.voteSignature);
    expect(stateFile()).toEqual(JSON.parse(vectors.stateFile));
    const key = Buffer.from(publicKey.value, "base64");
    expect(verifySignature(key, voteSignBytes(CHAIN_ID, vote), signature)).toBe(true);
  });

  it("leaves nothing of a state that a killed process was writing", async () => {
    fs.writeFileSync(files.stateFile, vectors.stateFile);
    fs.writeFileSync(path.join(folder, `.state.json.${randomUUID()}.tmp`), vectors.stateFile);
    const signer = await PrivateValidator.open(files);
    expect(signer.lastPlace).toMatchObject({ height: 36, round: 2, step: 3 });
    expect(fs.readdirSync(folder).toSorted()).toEqual(["key.json", "state.json"]);
  });

  it("goes on from a state file of CometBFT's", async () => {
    fs.writeFileSync(files.stateFile, vectors.stateFile);
    const signer = await PrivateValidator.open(files);
    const refused = { code: "SIGNATURE_REFUSED" };
    await expect(signer.signVote(prevote({ height: 35 }))).rejects.toMatchObject(refused);
    await expect(signer.signVote(prevote({ height: 36, round: 1 }))).rejects.toMatchObject(refused);
    await signer.signVote(prevote({ height: 37, round: 0 }));
  });

  it.each<[string, Partial<VoteContent>]>([
    ["an earlier round", { round: 0 }],
    ["an earlier height", { height: 9 }],
    ["an earlier height and a later round", { height: 8, round: 5 }],
    ["another block", { blockId: block2 }],
    ["nil after a block", { blockId: undefined }],
  ])("refuses %s, also after a restart", async (_, change) => {
    const signer = await PrivateValidator.open(files);
    await signer.signVote(prevote());
    const before = stateFile();
    for (const one of [signer, await PrivateValidator.open(files)]) {
      await expect(one.signVote(prevote(change))).rejects.toMatchObject({
        code: "SIGNATURE_REFUSED",
      });
    }
    expect(stateFile()).toEqual(before);
  });

  it("refuses a prevote after the precommit, and a proposal after the prevote", async () => {
    const signer = await PrivateValidator.open(files);
    const proposal = { height: 10, round: 1, polRound: -1, blockId: block1, timeNs: 1n };
    await signer.signVote(prevote());
    await expect(signer.signProposal(proposal)).rejects.toMatchObject({
      code: "SIGNATURE_REFUSED",
    });
    await signer.signVote(prevote({ type: VOTE_TYPE.precommit }));
    await expect(signer.signVote(prevote())).rejects.toMatchObject({ code: "SIGNATURE_REFUSED" });
  });

  it("gives the same vote the same signature, and one of another time the first time", async () => {
    const first = await (await PrivateValidator.open(files)).signVote(prevote());
    const signer = await PrivateValidator.open(files);
    expect(await signer.signVote(prevote())).toEqual(first);
    const later = prevote({ timeNs: prevote().timeNs + 1_000_000n });
    expect(await signer.signVote(later)).toEqual(first);
    expect(first.timeNs).toBe(prevote().timeNs);
  });

  it("gives the same proposal the same signature, whatever its time", async () => {
    const signer = await PrivateValidator.open(files);
    const proposal = { height: 10, round: 1, polRound: -1, blockId: block1, timeNs: 5n };
    const first = await signer.signProposal(proposal);
    expect(await signer.signProposal({ ...proposal, timeNs: 6n })).toEqual(first);
    const changes = [
      { blockId: block2 },
      { polRound: 0 },
      { round: 0 },
      { height: 9 },
      { height: 8, round: 5 },
    ];
    for (const change of changes) {
      await expect(signer.signProposal({ ...proposal, ...change })).rejects.toMatchObject({
        code: "SIGNATURE_REFUSED",
      });
    }
  });

  it("signs nothing that it cannot write down", async () => {
    const signer = await PrivateValidator.open({
      ...files,
      stateFile: path.join(folder, "missing", "state.json"),
    });
    await expect(signer.signVote(prevote())).rejects.toMatchObject({ code: "SIGNER_WRITE_FAILED" });
    // Nor does it believe that it signed.
    await expect(signer.signVote(prevote({ blockId: block2 }))).rejects.toMatchObject({
      code: "SIGNER_WRITE_FAILED",
    });
  });

  it.each([
    ["no JSON", "{"],
    ["a height as a number", '{"height": 3, "round": 0, "step": 0}'],
    ["an unknown step", '{"height": "3", "round": 0, "step": 7}'],
  ])("does not start on a damaged state file: %s", async (_, text) => {
    fs.writeFileSync(files.stateFile, text);
    await expect(PrivateValidator.open(files)).rejects.toMatchObject({
      code: "VALIDATOR_STATE_INVALID",
    });
  });
});
