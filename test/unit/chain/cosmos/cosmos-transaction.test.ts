/** Cosmos transactions held against CosmJS, which encodes and signs them independently of us. */
import { describe, expect, it } from "@jest/globals";
import { CompactBitArray } from "cosmjs-types/cosmos/crypto/multisig/v1beta1/multisig";
import { LegacyAminoPubKey } from "cosmjs-types/cosmos/crypto/multisig/keys";
import { AuthInfo } from "cosmjs-types/cosmos/tx/v1beta1/tx";
import { parseBech32, toBech32 } from "../../../../chain/address.js";
import { feeFault, mostCosmosCostAtoken, sequenceFault } from "../../../../chain/cosmos/ante.js";
import {
  decodeCosmosTransaction,
  hasTooManyMessages,
} from "../../../../chain/cosmos/cosmos-transaction.js";
import { typedDataOf } from "../../../../chain/cosmos/eip712.js";
import { aminoSignBytes, aminoSignDoc } from "../../../../chain/cosmos/sign-doc.js";
import { protoJsonOfAny } from "../../../../chain/cosmos/field-schema.js";
import { SECP256K1_ORDER } from "../../../../chain/crypto.js";
import { bigintToWord, bytesToBigint } from "../../../../chain/hex.js";
import { ProtoWriter } from "../../../../chain/protobuf/wire.js";
import { type CosmJsMessage, signWithCosmJs } from "../../../helpers/cosmos/cosmjs.js";
import {
  MNEMONIC,
  LIMITS,
  sender,
  receiver,
  send,
  type Options,
  readAll,
  read,
  faultOf,
  raw,
} from "./signed.js";

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
    expect([hasTooManyMessages(bytes), hasTooManyMessages(read(most).raw)]).toEqual([true, false]);
  });

  it.each([
    [853, "more than 2560 messages in each other"],
    [852, undefined],
  ])(
    "is counted without being read as it is read, %d coins in each of three messages",
    (count, fault) => {
      const empty = Array.from({ length: count }, () => ({ denom: "", amount: "" }));
      const message = {
        typeUrl: "/cosmos.bank.v1beta1.MsgSend",
        value: { fromAddress: sender, toAddress: receiver, amount: empty },
      };
      const messages = [message, message, message];
      const value = { messages, proposer: sender, title: "t", summary: "s" };
      const proposal = { typeUrl: "/cosmos.gov.v1.MsgSubmitProposal", value };
      const [answer] = signWithCosmJs(MNEMONIC, [
        { messages: [proposal], chainId: LIMITS.cosmosChainId },
      ]);
      const bytes = answer?.raw ?? Buffer.alloc(0);
      expect(hasTooManyMessages(bytes)).toBe(fault !== undefined);
      if (fault === undefined) expect(decodeCosmosTransaction(bytes).messages).toHaveLength(1);
      else expect(() => decodeCosmosTransaction(bytes)).toThrow(fault);
    },
  );

  it("is counted also behind what cannot be read: that is met last, by the order of the schema", () => {
    const field = (number: number, content: Uint8Array) => {
      const length: number[] = [];
      for (let rest = content.length; ; rest >>= 7) {
        length.push(rest < 128 ? rest : (rest & 127) | 128);
        if (rest < 128) break;
      }
      return Buffer.concat([Buffer.of(number * 8 + 2, ...length), content]);
    };
    const inputs = field(1, Buffer.concat(Array.from({ length: 3_000 }, () => Buffer.of(0x12, 0))));
    const typeUrl = field(1, Buffer.from("/cosmos.bank.v1beta1.MsgMultiSend"));
    for (const unreadable of [field(2, Buffer.of(0xff)), Buffer.alloc(0)]) {
      const message = field(2, Buffer.concat([unreadable, inputs]));
      const body = field(1, Buffer.concat([typeUrl, message]));
      expect(hasTooManyMessages(field(1, body))).toBe(true);
    }
    const few = field(1, field(1, Buffer.concat([typeUrl, field(2, field(2, Buffer.of(0xff)))])));
    expect(hasTooManyMessages(Buffer.concat([few, field(2, Buffer.alloc(9_000))]))).toBe(false);
  });

  it("is signed as typed data up to what a wallet can show", () => {
    const typedOf = (outputs: number) =>
      typedDataOf(aminoSignDoc(read({ messages: [sends(outputs, 1)] }), "chain_6940-1"), 6940n);
    // The message, its value, an input with its coin, and two objects of each output.
    expect(typedOf(247)).toBeDefined();
    expect(typedOf(249)).toBeUndefined();
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

  it("says of a key of several signers that this chain has none, however it is named", () => {
    const tx = read();
    const { signerInfos, fee } = AuthInfo.decode(tx.authInfoBytes);
    const [own] = signerInfos;
    if (own?.publicKey === undefined) throw new Error("nobody signed");
    const one = own.publicKey;
    const typeUrl = "/cosmos.crypto.multisig.LegacyAminoPubKey";
    const keys = { threshold: 2, publicKeys: [one, one, one] };
    const several = { typeUrl, value: LegacyAminoPubKey.encode(keys).finish() };
    const single = own.modeInfo?.single;
    const bitarray = CompactBitArray.fromPartial({
      extraBitsStored: 3,
      elems: Uint8Array.of(0xc0),
    });
    const multi = { bitarray, modeInfos: [{ single }, { single }] };
    for (const [publicKey, modeInfo] of [
      [several, { multi }],
      [several, { single }],
      [one, { multi }],
      [{ typeUrl, value: new Uint8Array(0) }, { single }],
    ] as const) {
      const info = { sequence: 0n, publicKey, modeInfo };
      const authInfoBytes = AuthInfo.encode(
        AuthInfo.fromPartial({ fee, signerInfos: [info] } as never),
      ).finish();
      const bytes = raw({ authInfoBytes }, tx);
      for (const options of [{}, { isSimulated: true }]) {
        expect(() => decodeCosmosTransaction(bytes, options)).toThrow(
          /multi-signature keys .* an account of several people is a contract$/,
        );
      }
    }
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
