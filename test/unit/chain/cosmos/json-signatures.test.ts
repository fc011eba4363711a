/** Signatures over JSON, as amino JSON or as typed data: what they cover, a time included. */
import { describe, expect, it } from "@jest/globals";
import { TypedDataEncoder } from "ethers";
import { parseAddress, toBech32 } from "../../../../chain/address.js";
import { timestampFault } from "../../../../chain/cosmos/ante.js";
import {
  type CosmosTransaction,
  decodeCosmosTransaction,
} from "../../../../chain/cosmos/cosmos-transaction.js";
import { typedDataDigest, typedDataOf } from "../../../../chain/cosmos/eip712.js";
import { aminoSignBytes, aminoSignDoc } from "../../../../chain/cosmos/sign-doc.js";
import { protoJsonOfAny } from "../../../../chain/cosmos/field-schema.js";
import { secp256k1 } from "../../../../chain/crypto.js";
import { keccak256 } from "../../../../chain/hashes.js";
import { ProtoWriter } from "../../../../chain/protobuf/wire.js";
import { type CosmJsMessage } from "../../../helpers/cosmos/cosmjs.js";
import {
  LIMITS,
  privateKey,
  sender,
  receiver,
  send,
  type Options,
  read,
  raise,
  faultOf,
  raw,
} from "./signed.js";

/** A transaction of the wallet's over a document of amino JSON that a test writes itself. */
function signedAmino(
  bodyBytes: Uint8Array,
  document: { readonly msgs: unknown; readonly timeout_timestamp?: string },
): CosmosTransaction {
  const draft = read({ mode: 127 });
  const common = {
    account_number: "0",
    chain_id: LIMITS.cosmosChainId,
    fee: { amount: [{ amount: "1625", denom: "atoken" }], gas: "65000" },
    memo: "",
  };
  const { msgs, ...time } = document;
  const text = JSON.stringify({ ...common, msgs, sequence: "0", ...time });
  const { r, s } = secp256k1.sign(keccak256(Buffer.from(text)), privateKey);
  const signatures = [Buffer.concat([r, s])];
  return decodeCosmosTransaction(raw({ bodyBytes, signatures }, draft));
}

/** The body of a transaction with a time after which it is void. */
function bodyWithTime(of: CosmosTransaction, seconds: bigint, nanos: number): Uint8Array {
  const time = new ProtoWriter().integer(1, seconds).integer(2, nanos);
  return Buffer.concat([of.bodyBytes, new ProtoWriter().message(5, time).finish()]);
}

describe("a signature over typed data", () => {
  it("covers no sign mode: the same one counts in both, under another hash each", () => {
    const modes = [read(), read({ mode: 127 })];
    const digests = modes.map((tx) => {
      const typed = typedDataOf(aminoSignDoc(tx, LIMITS.cosmosChainId), LIMITS.chainId);
      return typedDataDigest(typed ?? raise());
    });
    expect(digests[1]).toEqual(digests[0]);
    const { r, s } = secp256k1.sign(digests[0] ?? raise(), privateKey);
    const signatures = [Buffer.concat([r, s])];
    const signed = modes.map((tx) => decodeCosmosTransaction(raw({ signatures }, tx)));
    expect(signed.map(({ signMode }) => signMode)).toEqual([1, 127]);
    expect(signed.map(faultOf)).toEqual([undefined, undefined]);
    expect(new Set(signed.map(({ hash }) => hash)).size).toBe(2);
  });
});

describe("a time after which a transaction is void", () => {
  const msgs = [
    {
      type: "cosmos-sdk/MsgSend",
      value: {
        amount: [{ amount: "7", denom: "atoken" }],
        from_address: sender,
        to_address: receiver,
      },
    },
  ];

  it("is signed with amino JSON as the SDK writes it: nobody can add or change it", () => {
    const base = read();
    const body = bodyWithTime(base, 1_800_000_000n, 500_000_000);
    // Go's RFC3339Nano: no zeros at the end.
    const timeout_timestamp = "2027-01-15T08:00:00.5Z";
    expect(faultOf(signedAmino(body, { msgs, timeout_timestamp }))).toBeUndefined();
    expect(faultOf(signedAmino(body, { msgs }))?.code).toBe(4);
    expect(faultOf(signedAmino(base.bodyBytes, { msgs }))).toBeUndefined();
  });

  it("has passed in a block of a later time, in the SDK's words", () => {
    const base = read();
    const at = (seconds: bigint, nanos: number) =>
      decodeCosmosTransaction(raw({ bodyBytes: bodyWithTime(base, seconds, nanos) }, base));
    const tx = at(1_800_000_000n, 500_000_000);
    expect(timestampFault(base, 2_000_000_000_000)).toBeUndefined();
    expect(timestampFault(tx, 1_800_000_000_499)).toBeUndefined();
    expect(timestampFault(tx, 1_800_000_000_500)).toBeUndefined();
    expect(timestampFault(tx, 1_800_000_000_501)).toEqual({
      code: 42,
      codespace: "sdk",
      log:
        "block time: 2027-01-15 08:00:00.501 +0000 UTC, " +
        "timeout timestamp: 2027-01-15 08:00:00.5 +0000 UTC: tx timeout",
    });
    // The first second of 1970 is none; what is no time is not read.
    expect(timestampFault(at(0n, 5), 1_800_000_000_000)).toBeUndefined();
    for (const [seconds, nanos] of [
      [253_402_300_800n, 0],
      [-62_135_596_801n, 0],
      [1n, 10 ** 9],
    ] as const) {
      expect([seconds, timestampFault(at(seconds, nanos), 1)?.code]).toEqual([seconds, 2]);
    }
  });
});

describe("a time in a message that JSON cannot say", () => {
  it.each([9_000_000_000_000_000_000n, -9_000_000_000_000n])(
    "makes no signature over JSON count, and no exception (%i)",
    (seconds) => {
      const gov = toBech32(parseAddress(`0x${"0".repeat(37)}805`));
      const time = new ProtoWriter().integer(1, seconds);
      const plan = new ProtoWriter().bytes(1, "name").message(2, time).integer(3, 9);
      const upgrade = new ProtoWriter().bytes(1, gov).message(2, plan).finish();
      const any = (typeUrl: string, value: Uint8Array) =>
        new ProtoWriter().bytes(1, typeUrl).bytes(2, value);
      const submit = new ProtoWriter()
        .message(1, any("/cosmos.upgrade.v1beta1.MsgSoftwareUpgrade", upgrade))
        .bytes(3, sender)
        .bytes(4, "m")
        .bytes(5, "t")
        .bytes(6, "s");
      const proposal = any("/cosmos.gov.v1.MsgSubmitProposal", submit.finish());
      const body = new ProtoWriter().message(1, proposal).finish();
      expect(faultOf(signedAmino(body, { msgs: [] }))?.code).toBe(4);
      // Signed as it is it counts, and is shown with the nearest time.
      const [message] = signedAmino(body, { msgs: [] }).messages;
      const shown = JSON.stringify(protoJsonOfAny(message as never));
      expect(shown).toContain(seconds > 0n ? "9999-12-31T23:59:59Z" : "0001-01-01T00:00:00Z");
    },
  );
});

describe("amino JSON and EIP-712", () => {
  function signedBy(tx: CosmosTransaction, digest: Uint8Array): CosmosTransaction {
    const { r, s } = secp256k1.sign(digest, privateKey);
    return decodeCosmosTransaction(raw({ signatures: [Buffer.concat([r, s])] }, tx));
  }
  const aminoDraft = (options: Options = {}) => read({ ...options, mode: 127 });

  it("a signature over amino JSON counts", () => {
    const draft = aminoDraft({ memo: "<>&" });
    expect(faultOf(draft)?.code).toBe(4);
    const doc = aminoSignBytes(aminoSignDoc(draft, LIMITS.cosmosChainId));
    expect(faultOf(signedBy(draft, keccak256(doc)))).toBeUndefined();
  });

  it("a decimal has one spelling under a signature over JSON, so that nobody can write another", () => {
    const ballot = (weight: string) => ({
      typeUrl: "/cosmos.gov.v1beta1.MsgVoteWeighted",
      value: { proposalId: "1n", voter: sender, options: [{ option: 1, weight }] },
    });
    const half = "500000000000000000";
    const draft = aminoDraft({ messages: [ballot(half)] });
    const document = aminoSignDoc(draft, LIMITS.cosmosChainId);
    const digests = [
      keccak256(aminoSignBytes(document)),
      typedDataDigest(typedDataOf(document, 6940n) ?? raise()),
    ];
    for (const digest of digests) {
      const signed = signedBy(draft, digest);
      expect(faultOf(signed)).toBeUndefined();
      // In JSON all of these are 0.5; the first one makes its message fail, for the signer's fee.
      for (const weight of ["0.500000000000000000", `0${half}`, `000${half}`]) {
        const { bodyBytes } = aminoDraft({ messages: [ballot(weight)] });
        const changed = decodeCosmosTransaction(raw({ bodyBytes }, signed));
        expect([weight, faultOf(changed)?.code]).toEqual([weight, 4]);
      }
    }
  });

  it("typed data has the digest that ethers works out, and its signature counts", () => {
    const draft = aminoDraft({ messages: [send(), send("9")] });
    const typed = typedDataOf(aminoSignDoc(draft, LIMITS.cosmosChainId), 6940n);
    if (typed === undefined) throw new Error("there is no typed data");
    const { EIP712Domain, ...types } = typed.types;
    expect(EIP712Domain).toHaveLength(5);
    // cosmos/evm, ethereum/eip712: types of a MsgSend.
    expect(types["TypeMsgSend0"]).toEqual([
      { name: "value", type: "TypeValue0" },
      { name: "type", type: "string" },
    ]);
    expect(types["TypeValue0"]).toEqual([
      { name: "to_address", type: "string" },
      { name: "from_address", type: "string" },
      { name: "amount", type: "TypeValueAmount0[]" },
    ]);
    const digest = typedDataDigest(typed);
    // ethers fixes the types of the domain's fields, so the domain is hashed as a struct of its own.
    const encoder = TypedDataEncoder.from(types as never);
    const domain = TypedDataEncoder.hashStruct(
      "EIP712Domain",
      { EIP712Domain } as never,
      typed.domain,
    );
    const message = encoder.hashStruct("Tx", typed.message);
    const expected = keccak256(Buffer.from(`1901${domain.slice(2)}${message.slice(2)}`, "hex"));
    expect(Buffer.from(digest).toString("hex")).toBe(Buffer.from(expected).toString("hex"));
    expect(faultOf(signedBy(draft, digest))).toBeUndefined();
  });

  it("typed data covers every item of a list, or there is none", () => {
    const gov = toBech32(parseAddress(`0x${"805".padStart(40, "0")}`));
    const spend = (amount: string) => ({
      typeUrl: "/cosmos.distribution.v1beta1.MsgCommunityPoolSpend",
      value: { authority: gov, recipient: receiver, amount: [{ denom: "atoken", amount }] },
    });
    const cancel = {
      typeUrl: "/cosmos.upgrade.v1beta1.MsgCancelUpgrade",
      value: { authority: gov },
    };
    const proposal = (...messages: readonly CosmJsMessage[]) => {
      const texts = { proposer: sender, metadata: "", title: "t", summary: "s", expedited: false };
      const value = { messages, initialDeposit: [], ...texts };
      return aminoDraft({ messages: [{ typeUrl: "/cosmos.gov.v1.MsgSubmitProposal", value }] });
    };
    const typedOf = (tx: CosmosTransaction) =>
      typedDataOf(aminoSignDoc(tx, LIMITS.cosmosChainId), 6940n);
    // The items of a list have one type. Of what another one holds beside it wallets sign nothing,
    // so that anybody could write another amount under the same signature.
    expect(typedOf(proposal(cancel, spend("7")))).toBeUndefined();
    expect(typedOf(proposal(spend("7"), cancel))).toBeUndefined();
    const [seven, nine] = ["7", "9"].map((amount) => proposal(spend("1"), spend(amount)));
    if (seven === undefined || nine === undefined) throw new Error("nothing was read");
    const digest = typedDataDigest(typedOf(seven) ?? raise());
    expect(faultOf(signedBy(seven, digest))).toBeUndefined();
    expect(faultOf(signedBy(nine, digest))?.code).toBe(4);
    const ballot = (...options: readonly object[]) =>
      aminoDraft({
        messages: [
          {
            typeUrl: "/cosmos.gov.v1.MsgVoteWeighted",
            value: { proposalId: "1n", voter: sender, options, metadata: "" },
          },
        ],
      });
    // A member that is empty is left out of the document, and makes it another type.
    const [whole, half] = [1, 3].map((option) => ({ option, weight: "0.5" }));
    expect(typedOf(ballot(whole ?? {}, half ?? {}))).toBeDefined();
    expect(typedOf(ballot({ option: 0, weight: "" }, half ?? {}))).toBeUndefined();
  });

  it("typed data does not cover a timeout, so it does not count with one", () => {
    const draft = aminoDraft({ timeoutHeight: 9 });
    const typed = typedDataOf(aminoSignDoc(draft, LIMITS.cosmosChainId), 6940n);
    if (typed === undefined) throw new Error("there is no typed data");
    expect(faultOf(signedBy(draft, typedDataDigest(typed)))?.code).toBe(4);
  });
});
