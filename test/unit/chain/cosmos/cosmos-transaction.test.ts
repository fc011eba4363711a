/** Cosmos transactions held against CosmJS, which encodes and signs them independently of us. */
import { describe, expect, it } from "@jest/globals";
import { TypedDataEncoder, Wallet } from "ethers";
import { parseAddress, parseBech32, toBech32 } from "../../../../chain/address.js";
import {
  feeFault,
  mostCosmosCostAtoken,
  sequenceFault,
  signatureFault,
  staticCosmosFault,
  timestampFault,
} from "../../../../chain/cosmos/ante.js";
import {
  type CosmosTransaction,
  decodeCosmosTransaction,
} from "../../../../chain/cosmos/cosmos-transaction.js";
import { typedDataDigest, typedDataOf } from "../../../../chain/cosmos/eip712.js";
import { aminoSignBytes, aminoSignDoc } from "../../../../chain/cosmos/sign-doc.js";
import { protoJsonOfAny } from "../../../../chain/cosmos/field-schema.js";
import { secp256k1, SECP256K1_ORDER } from "../../../../chain/crypto.js";
import { keccak256 } from "../../../../chain/hashes.js";
import { bigintToWord, bytesToBigint } from "../../../../chain/hex.js";
import { ProtoWriter } from "../../../../chain/consensus/protobuf.js";
import { type CosmJsMessage, signWithCosmJs } from "../../../helpers/cosmos/cosmjs.js";

const MNEMONIC = "test test test test test test test test test test test junk";
const LIMITS = {
  cosmosChainId: "chain_6940-1",
  chainId: 6940n,
  maxTransactionGas: 30_000_000n,
};
const wallet = Wallet.fromPhrase(MNEMONIC);
const privateKey = Buffer.from(wallet.privateKey.slice(2), "hex");
const sender = toBech32(parseAddress(wallet.address));
const receiver = toBech32(parseAddress("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"));

const send = (amount = "7", from = sender): CosmJsMessage => ({
  typeUrl: "/cosmos.bank.v1beta1.MsgSend",
  value: { fromAddress: from, toAddress: receiver, amount: [{ denom: "atoken", amount }] },
});

type Options = Partial<Parameters<typeof signWithCosmJs>[1][number]>;

function readAll(...options: readonly Options[]): CosmosTransaction[] {
  const requests = options.map((one) => ({
    messages: [send()],
    chainId: LIMITS.cosmosChainId,
    ...one,
  }));
  return signWithCosmJs(MNEMONIC, requests).map(({ raw: bytes }) => decodeCosmosTransaction(bytes));
}

function read(options: Options = {}): CosmosTransaction {
  const [tx] = readAll(options);
  if (tx === undefined) throw new Error("nothing was signed");
  return tx;
}
function raise(): never {
  throw new Error("there is no typed data");
}
const faultOf = (tx: CosmosTransaction) =>
  staticCosmosFault(tx, LIMITS) ?? signatureFault(tx, LIMITS);
interface RawParts {
  readonly bodyBytes: Uint8Array;
  readonly authInfoBytes: Uint8Array;
  readonly signatures: readonly Uint8Array[];
}

function raw(parts: Partial<RawParts>, of: CosmosTransaction): Uint8Array {
  const writer = new ProtoWriter()
    .bytes(1, parts.bodyBytes ?? of.bodyBytes)
    .bytes(2, parts.authInfoBytes ?? of.authInfoBytes);
  for (const one of parts.signatures ?? [of.signature]) writer.message(3, one);
  return writer.finish();
}

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

describe("a transaction that CosmJS signed", () => {
  it("is read field by field, and its signature counts", () => {
    const tx = read({ memo: "a <b> & c", sequence: 3, gas: 80_000 });
    expect(tx.memo).toBe("a <b> & c");
    expect([tx.nonce, tx.gasLimit, tx.feeAtoken]).toEqual([3n, 80_000n, 1_625n]);
    expect(tx.signers).toEqual([parseBech32(sender)]);
    expect(mostCosmosCostAtoken(tx)).toBe(1_632n);
    expect(faultOf(tx)).toBeUndefined();
    expect(protoJsonOfAny(tx.messages[0] as never)).toEqual({
      "@type": "/cosmos.bank.v1beta1.MsgSend",
      from_address: sender,
      to_address: receiver,
      amount: [{ denom: "atoken", amount: "7" }],
    });
  });

  it("does not count on another chain", () => {
    expect(faultOf(read({ chainId: "chain_6941-1" }))).toEqual({
      code: 4,
      codespace: "sdk",
      log:
        "signature verification failed; please verify account number (0), sequence (0) and " +
        "chain-id (chain_6940-1): (unable to verify single signer signature): unauthorized",
    });
  });
});

describe("messages of every kind", () => {
  const validator = toBech32(parseBech32(sender), "addrvaloper");
  const coin = { denom: "atoken", amount: "5" };
  const cases: readonly CosmJsMessage[] = [
    send(),
    {
      typeUrl: "/cosmos.bank.v1beta1.MsgMultiSend",
      value: {
        inputs: [{ address: sender, coins: [coin] }],
        outputs: [{ address: receiver, coins: [coin] }],
      },
    },
    {
      typeUrl: "/cosmos.staking.v1beta1.MsgDelegate",
      value: { delegatorAddress: sender, validatorAddress: validator, amount: coin },
    },
    {
      typeUrl: "/cosmos.staking.v1beta1.MsgBeginRedelegate",
      value: {
        delegatorAddress: sender,
        validatorSrcAddress: validator,
        validatorDstAddress: validator,
        amount: coin,
      },
    },
    {
      typeUrl: "/cosmos.staking.v1beta1.MsgCancelUnbondingDelegation",
      value: {
        delegatorAddress: sender,
        validatorAddress: validator,
        amount: coin,
        creationHeight: "12n",
      },
    },
    {
      typeUrl: "/cosmos.distribution.v1beta1.MsgWithdrawDelegatorReward",
      value: { delegatorAddress: sender, validatorAddress: validator },
    },
    {
      typeUrl: "/cosmos.distribution.v1beta1.MsgSetWithdrawAddress",
      value: { delegatorAddress: sender, withdrawAddress: receiver },
    },
    {
      typeUrl: "/cosmos.gov.v1beta1.MsgVote",
      value: { proposalId: "3n", voter: sender, option: 1 },
    },
    {
      typeUrl: "/cosmos.gov.v1beta1.MsgDeposit",
      value: { proposalId: "3n", depositor: sender, amount: [coin] },
    },
  ];

  it("are encoded, and shown in amino JSON, as CosmJS does", () => {
    const requests = cases.map((message) => ({
      messages: [message],
      chainId: LIMITS.cosmosChainId,
      amino: true,
    }));
    for (const { raw: bytes, amino } of signWithCosmJs(MNEMONIC, requests)) {
      const tx = decodeCosmosTransaction(bytes);
      const ours = aminoSignBytes(aminoSignDoc(tx, LIMITS.cosmosChainId));
      expect(ours.toString()).toBe(amino);
    }
  });

  it("of modules that the chain does not have are refused by name, with what to do instead", () => {
    const typeUrls = [
      ["/cosmos.authz.v1beta1.MsgExec", "authz: every account signs its own"],
      ["/cosmos.authz.v1beta1.MsgGrant", "authz: every account signs its own"],
      ["/cosmos.authz.v1beta1.MsgRevoke", "authz: every account signs its own"],
      ["/cosmos.feegrant.v1beta1.MsgGrantAllowance", "feegrant: who signs pays"],
      ["/cosmos.feegrant.v1beta1.MsgRevokeAllowance", "feegrant: who signs pays"],
      ["/cosmos.vesting.v1beta1.MsgCreateVestingAccount", "vesting: coins are locked by the gen"],
      ["/ibc.applications.transfer.v1.MsgTransfer", "ibc: send to accounts of this chain"],
    ] as const;
    const requests = typeUrls.map(([typeUrl]) => ({
      messages: [{ typeUrl, value: {} }],
      chainId: LIMITS.cosmosChainId,
    }));
    for (const [index, { raw: bytes }] of signWithCosmJs(MNEMONIC, requests).entries()) {
      const [typeUrl, instead] = typeUrls[index] ?? [];
      const reason = `unable to resolve type URL "${typeUrl}": this chain has no x/${instead}`;
      expect(() => decodeCosmosTransaction(bytes)).toThrow(reason);
    }
  });

  it("unknown ones are refused by name", () => {
    const bodyBytes = Buffer.concat([
      Buffer.from([0x0a, 0x0d, 0x0a, 0x0b]),
      Buffer.from("/foo.v1.Bar"),
    ]);
    const tx = read();
    expect(() => decodeCosmosTransaction(raw({ bodyBytes }, tx))).toThrow(
      'unable to resolve type URL "/foo.v1.Bar"',
    );
  });
});

describe("what somebody asks to be read and verified, and has not paid for", () => {
  const coins = [{ denom: "atoken", amount: "1" }];
  const sends = (outputs: number, coinsOfEach: number) => ({
    typeUrl: "/cosmos.bank.v1beta1.MsgMultiSend",
    value: {
      inputs: [{ address: sender, coins }],
      outputs: Array.from({ length: outputs }, () => ({
        address: receiver,
        coins: Array.from({ length: coinsOfEach }, () => ({ denom: "", amount: "" })),
      })),
    },
  });

  it("is bounded by what gas can pay, and what a chain has taken before is read", () => {
    // 25,000 gas an output: all that a transaction of 30,000,000 gas can pay.
    const most = { messages: [sends(1_000, 1), sends(170, 1)] };
    expect(read(most).messages).toHaveLength(2);
    const [answer] = signWithCosmJs(MNEMONIC, [
      { messages: [sends(10, 256)], chainId: LIMITS.cosmosChainId },
    ]);
    const bytes = answer?.raw ?? Buffer.alloc(0);
    expect(() => decodeCosmosTransaction(bytes)).toThrow("more than 2560 messages in each other");
    const simulated = { isSimulated: true };
    expect(() => decodeCosmosTransaction(bytes, simulated)).toThrow("more than 2560 messages");
    expect(decodeCosmosTransaction(bytes, { isTaken: true }).messages).toHaveLength(1);
  });

  it("is signed as typed data up to what a wallet can show", () => {
    const typedOf = (outputs: number) =>
      typedDataOf(aminoSignDoc(read({ messages: [sends(outputs, 1)] }), "chain_6940-1"), 6940n);
    // The message, its value, an input with its coin, and two objects of each output.
    expect(typedOf(247)).toBeDefined();
    expect(typedOf(249)).toBeUndefined();
  });
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

describe("what is not in order", () => {
  it("has the SDK's code", () => {
    const cases: readonly (readonly [number | undefined, Options])[] = [
      [18, { messages: [] }],
      [12, { memo: "x".repeat(257) }],
      [undefined, { memo: "x".repeat(256) }],
      [37, { granter: receiver }],
      [11, { gas: 20_000 }],
      [41, { gas: 30_000_001 }],
      [13, { fee: [{ denom: "other", amount: "9999" }] }],
      [8, { messages: [send("1", receiver)] }],
      [37, { messages: [send(), send("1", receiver)] }],
    ];
    const wrong = readAll(...cases.map(([, options]) => options));
    expect(wrong.map((tx) => faultOf(tx)?.code)).toEqual(cases.map(([code]) => code));
    const [tx] = readAll({});
    if (tx === undefined) throw new Error("nothing was signed");
    expect(feeFault(tx, { numerator: 25n, denominator: 1_000n })).toBeUndefined();
    expect(feeFault(tx, { numerator: 26n, denominator: 1_000n })).toEqual({
      code: 13,
      codespace: "sdk",
      log: "insufficient fees; got: 1625atoken required: 1690atoken: insufficient fee",
    });
    expect(sequenceFault(1n, 0n)?.log).toBe(
      "account sequence mismatch, expected 1, got 0: incorrect account sequence",
    );
  });

  it("says what to sign instead of the older form of EIP-712, which covers one message alone", () => {
    const tx = read();
    const withOption = (typeUrl: string) => {
      const option = new ProtoWriter().message(1023, new ProtoWriter().bytes(1, typeUrl)).finish();
      const bodyBytes = Buffer.concat([tx.bodyBytes, option]);
      return faultOf(decodeCosmosTransaction(raw({ bodyBytes, signatures: [] }, tx)));
    };
    for (const name of ["/ethermint.types.v1", "/cosmos.evm.eip712.v1"]) {
      expect([name, withOption(`${name}.ExtensionOptionsWeb3Tx`)]).toMatchObject([
        name,
        {
          code: 31,
          log: expect.stringMatching(/sign typed data with msg0, .*: unknown extension/),
        },
      ]);
    }
    expect(withOption("/x.Y")).toEqual({
      code: 31,
      codespace: "sdk",
      log: "unknown extension options",
    });
  });

  it("has one encoding and one signature: every other form is refused", () => {
    const tx = read();
    const bytes = Buffer.from(tx.raw);
    const s = SECP256K1_ORDER - bytesToBigint(tx.signature.subarray(32));
    const high = Buffer.concat([tx.signature.subarray(0, 32), bigintToWord(s)]);
    expect(faultOf(decodeCosmosTransaction(raw({ signatures: [high] }, tx)))?.code).toBe(4);
    const long = Buffer.concat([tx.signature, Buffer.from([27])]);
    // evmd's keys sign so: they are told what to leave out.
    expect(faultOf(decodeCosmosTransaction(raw({ signatures: [long] }, tx)))).toMatchObject({
      code: 4,
      log: expect.stringMatching(/it has 65 bytes, send the first 64, r and s.*: unauthorized$/),
    });
    const refused: readonly Uint8Array[] = [
      Buffer.concat([bytes, Buffer.from([0x22, 0x00])]),
      Buffer.concat([bytes, Buffer.from([0x1a, 0x00])]),
      Buffer.concat([bytes.subarray(-66), bytes.subarray(0, -66)]),
      raw({ bodyBytes: Buffer.concat([tx.bodyBytes, Buffer.from([0x18, 0x00])]) }, tx),
      raw({ bodyBytes: Buffer.concat([tx.bodyBytes, Buffer.from([0x32, 0x00])]) }, tx),
      raw({ authInfoBytes: Buffer.concat([tx.authInfoBytes, Buffer.from([0x1a, 0x00])]) }, tx),
      bytes.subarray(0, -1),
      Buffer.alloc(0),
    ];
    for (const one of refused) {
      if (one.length === 0) expect(decodeCosmosTransaction(one).messages).toEqual([]);
      else expect(() => decodeCosmosTransaction(one)).toThrow();
    }
  });
});
