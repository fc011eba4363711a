/**
 * gRPC and its reflection, judged by CosmJS' codecs (`cosmjs-types`, compiled from the same
 * published files by others).
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import * as grpc from "@grpc/grpc-js";
import { QueryAccountResponse } from "cosmjs-types/cosmos/auth/v1beta1/query";
import { BaseAccount } from "cosmjs-types/cosmos/auth/v1beta1/auth";
import { QueryBalanceRequest, QueryBalanceResponse } from "cosmjs-types/cosmos/bank/v1beta1/query";
import {
  ABCIQueryRequest,
  ABCIQueryResponse,
  GetLatestBlockResponse,
} from "cosmjs-types/cosmos/base/tendermint/v1beta1/query";
import {
  BroadcastTxRequest,
  BroadcastTxResponse,
  GetTxResponse,
  GetTxsEventResponse,
  SimulateRequest,
} from "cosmjs-types/cosmos/tx/v1beta1/service";
import { FileDescriptorProto } from "cosmjs-types/google/protobuf/descriptor";
import { ProtoWriter } from "../../../chain/protobuf/wire.js";
import { encodeRlp } from "../../../chain/encoding/rlp-writer.js";
import { decodeMessage, encodeMessage } from "../../../chain/protobuf/codec.js";
import { MessageReader } from "../../../chain/protobuf/values.js";
import { QueryFault } from "../../../node/rpc/cosmos/errors.js";
import { QueryRegistry } from "../../../node/rpc/cosmos/registry.js";
import { startGrpcServer } from "../../../node/rpc/grpc/server.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import {
  faucetText,
  receiverText,
  nobody,
  chain,
  client,
  rpc,
  sdkHash,
  call,
  openInterfaces,
  closeInterfaces,
} from "./interfaces.js";

beforeAll(openInterfaces);
afterAll(closeInterfaces);

function raise(error: Error): never {
  throw error;
}

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

  it("refuses a text whose shown part ends inside a character, and answers what comes then", async () => {
    const account = "/cosmos.auth.v1beta1.Query/Account";
    // The hundredth unit is the first half of a pair.
    const text = Buffer.from(`${"a".repeat(99)}\u{1f600}`);
    const request = Buffer.concat([Buffer.from([10, text.length]), text]);
    await expect(call(account, request)).rejects.toMatchObject({
      code: grpc.status.INVALID_ARGUMENT,
      details: expect.stringContaining(`got "${"a".repeat(99)}\ufffd"`),
    });
    const asked = await call("/cosmos.bank.v1beta1.Query/Params");
    expect(asked.bytes.length).toBeGreaterThan(0);
  });

  it("tells of a refusal no more than every client takes in a header", async () => {
    const height = "x".repeat(5_000);
    const refused = call("/cosmos.bank.v1beta1.Query/Params", undefined, {
      "x-cosmos-block-height": height,
    });
    await expect(refused).rejects.toMatchObject({
      code: grpc.status.INVALID_ARGUMENT,
      details: expect.stringMatching(/^invalid height header .{0,780}$/),
    });
  });

  it("ends a call that cannot even be refused, and answers the next", async () => {
    const path = "/cosmos.bank.v1beta1.Query/Params";
    let asked = 0;
    const params = () => {
      asked += 1;
      if (asked > 1) return {};
      throw Object.defineProperty(new QueryFault("NOT_FOUND", ""), "message", {
        get: () => raise(new RangeError("no text")),
      });
    };
    const own = await startGrpcServer({
      listen: { host: "127.0.0.1", port: 0 },
      queries: new QueryRegistry(chain.queries.types, { [path]: params }, () => 3, 20_000),
      maxConnections: 1,
      requestsPerSecond: 0,
      clock: systemClock,
      log: createLogger({ component: "test", level: "silent" }),
    });
    const to = new grpc.Client(`127.0.0.1:${own.address.port}`, grpc.credentials.createInsecure());
    try {
      await expect(call(path, undefined, {}, to)).rejects.toMatchObject({
        code: grpc.status.INTERNAL,
        details: "internal error",
      });
      expect((await call(path, undefined, {}, to)).bytes.length).toBeGreaterThan(0);
    } finally {
      to.close();
      await own.stop();
    }
  });

  it("reads no request of millions of fields or values, whatever has to be read of it", async () => {
    const MILLIONS = Buffer.alloc(4_000_000, Buffer.from([10, 0]));
    const transaction = Buffer.concat([Buffer.from([10, 0x80, 0x92, 0xf4, 1]), MILLIONS]);
    for (const [path, request] of [
      ["/cosmos.tx.v1beta1.Service/GetTxsEvent", MILLIONS],
      ["/cosmos.tx.v1beta1.Service/TxDecode", transaction],
      ["/cosmos.tx.v1beta1.Service/TxEncode", transaction],
    ] as const) {
      const { INVALID_ARGUMENT } = grpc.status;
      await expect(call(path, request)).rejects.toMatchObject({ code: INVALID_ARGUMENT });
    }
    // 900,000 bytes in the first field: JSON of as many values is parsed no more.
    const json = Buffer.alloc(900_000, "[],");
    const request = Buffer.concat([Buffer.from([10, 0xa0, 0xf7, 0x36]), json]);
    for (const [path, details] of [
      ["/cosmos.evm.vm.v1.Query/EthCall", "args: too large"],
      ["/cosmos.tx.v1beta1.Service/TxEncodeAmino", "the tx json is too large"],
    ] as const) {
      await expect(call(path, request)).rejects.toMatchObject({ details });
    }
  });

  it("decodes no EVM transaction that is larger than any may be", async () => {
    const inside = (number: number, content: Uint8Array) =>
      new ProtoWriter().message(number, content).finish();
    // A list of half a million empty lists in the place of the transaction.
    const raw = Buffer.concat([
      Buffer.from([1]),
      encodeRlp(Array.from({ length: 500_000 }, () => [])),
    ]);
    const message = Buffer.concat([inside(5, Buffer.alloc(20, 1)), inside(6, raw)]);
    const typeUrl = Buffer.from("/cosmos.evm.vm.v1.MsgEthereumTx");
    const any = Buffer.concat([inside(1, typeUrl), inside(2, message)]);
    const txBytes = inside(1, inside(1, any));
    const broadcast = BroadcastTxRequest.encode({ txBytes, mode: 2 }).finish();
    const { bytes } = await call("/cosmos.tx.v1beta1.Service/BroadcastTx", broadcast);
    expect(BroadcastTxResponse.decode(bytes).txResponse).toMatchObject({
      code: 21,
      codespace: "sdk",
      rawLog: expect.stringContaining("tx too large: oversized data: transaction size"),
    });
    const simulation = SimulateRequest.encode(SimulateRequest.fromPartial({ txBytes })).finish();
    await expect(call("/cosmos.tx.v1beta1.Service/Simulate", simulation)).rejects.toMatchObject({
      details: expect.stringContaining("tx too large"),
    });
  });

  it("asks no query of a query inside a query, which would be read once for each level", async () => {
    const SELF = "/cosmos.base.tendermint.v1beta1.Service/ABCIQuery";
    const asking = (path: string, data: Uint8Array = new Uint8Array(0)) =>
      ABCIQueryRequest.encode(ABCIQueryRequest.fromPartial({ path, data })).finish();
    const ask = async (request: Uint8Array) =>
      ABCIQueryResponse.decode((await call(SELF, request)).bytes);
    const inner = asking("/cosmos.bank.v1beta1.Query/Params");
    const { code, value } = await ask(inner);
    expect([code, value.length > 0]).toEqual([0, true]);
    // Of 8 MB of it each level was copied: the node stood still for minutes.
    expect(await ask(asking(SELF, inner))).toMatchObject({
      code: 18,
      codespace: "sdk",
      log: "a query does not ask for queries: invalid request",
      value: new Uint8Array(0),
    });
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
