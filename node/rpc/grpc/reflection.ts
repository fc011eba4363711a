/**
 * gRPC's server reflection, v1 and v1alpha (the messages are the same): which services there are,
 * and the files that define them exactly as they were compiled, with all their imports, so that
 * grpcurl and buf can build every message from them.
 */
import type {
  handleBidiStreamingCall,
  ServerDuplexStream,
  ServiceDefinition,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { decodeMessage, decodeRequest, encodeMessage } from "../../../chain/protobuf/codec.js";
import type { DescriptorFile, Descriptors } from "../../../chain/protobuf/descriptors.js";
import { MessageReader, type ProtoMessage } from "../../../chain/protobuf/values.js";
import { GRPC_CODES } from "../cosmos/errors.js";
import { TOO_OFTEN } from "../rate-limit.js";

const VERSIONS = ["v1", "v1alpha"] as const;

/** Names of the services of reflection. */
export const REFLECTION_SERVICES: readonly string[] = VERSIONS.map(
  (version) => `grpc.reflection.${version}.ServerReflection`,
);

/** Questions that one stream may ask: a client that walks every type asks some hundreds. */
const MAX_QUESTIONS = 10_000;

/**
 * Definitions and handlers of both versions.
 * @param services names that are listed
 * @param mayAsk whether a peer may ask one more question now: each is a request like any other
 */
export function reflectionService(
  types: Descriptors,
  services: readonly string[],
  mayAsk: (peer: string) => boolean,
): readonly (readonly [ServiceDefinition, UntypedServiceImplementation])[] {
  return VERSIONS.map((version) => {
    const scope = `grpc.reflection.${version}`;
    const input = types.message(`${scope}.ServerReflectionRequest`);
    const output = types.message(`${scope}.ServerReflectionResponse`);
    const handler: handleBidiStreamingCall<ProtoMessage, Uint8Array> = (call) =>
      answerStream(call, mayAsk, (question, sent) => {
        return encodeMessage(output, answerOf(question, types, services, sent));
      });
    const definition: ServiceDefinition = {
      ServerReflectionInfo: {
        path: `/${scope}.ServerReflection/ServerReflectionInfo`,
        requestStream: true,
        responseStream: true,
        requestSerialize: (value: ProtoMessage) => encodeMessage(input, value),
        requestDeserialize: (bytes: Buffer) => decodeRequest(input, bytes),
        responseSerialize: (bytes: Uint8Array) => Buffer.from(bytes),
        responseDeserialize: (bytes: Buffer) => decodeMessage(output, bytes),
      },
    };
    return [definition, { ServerReflectionInfo: handler }] as const;
  });
}

function answerStream(
  call: ServerDuplexStream<ProtoMessage, Uint8Array>,
  mayAsk: (peer: string) => boolean,
  answer: (question: ProtoMessage, sent: Set<string>) => Uint8Array,
): void {
  /** Files that the stream was given; they are not sent again. */
  const sent = new Set<string>();
  let count = 0;
  const refuse = (details: string) => {
    call.emit("error", { code: GRPC_CODES.RESOURCE_EXHAUSTED, details });
  };
  call.on("data", (question: ProtoMessage) => {
    count += 1;
    if (count > MAX_QUESTIONS) return refuse("too many questions");
    if (!mayAsk(call.getPeer())) return refuse(TOO_OFTEN);
    // A question has thirty bytes, its answer up to all files: the next is read when that is taken.
    call.pause();
    call.write(answer(question, sent), () => call.resume());
  });
  call.on("end", () => call.end());
  call.on("error", () => call.end());
}

function answerOf(
  question: ProtoMessage,
  types: Descriptors,
  services: readonly string[],
  sent: Set<string>,
): ProtoMessage {
  const reader = new MessageReader(question);
  const base = { valid_host: reader.text("host"), original_request: question };
  const files = (file: DescriptorFile | undefined, what: string): ProtoMessage =>
    file === undefined
      ? { ...base, error_response: { error_code: GRPC_CODES.NOT_FOUND, error_message: what } }
      : { ...base, file_descriptor_response: filesOf(types, file, sent) };
  if (reader.has("list_services")) {
    const service = services.map((name) => ({ name }));
    return { ...base, list_services_response: { service } };
  }
  if (reader.has("file_by_filename")) {
    const name = reader.text("file_by_filename");
    return files(types.file(name), `file not found: ${name}`);
  }
  if (reader.has("file_containing_symbol")) {
    const symbol = reader.text("file_containing_symbol");
    return files(types.fileOfSymbol(symbol), `symbol not found: ${symbol}`);
  }
  if (reader.has("file_containing_extension")) {
    const extension = reader.submessage("file_containing_extension");
    const [type, number] = [
      extension.text("containing_type"),
      extension.number("extension_number"),
    ];
    return files(types.fileOfExtension(type, number), `extension not found: ${type} ${number}`);
  }
  if (reader.has("all_extension_numbers_of_type")) {
    const base_type_name = reader.text("all_extension_numbers_of_type");
    if (types.findMessage(base_type_name) === undefined) {
      return files(undefined, `type not found: ${base_type_name}`);
    }
    const extension_number = types.extensionNumbers(base_type_name);
    const all_extension_numbers_response = { base_type_name, extension_number };
    return { ...base, all_extension_numbers_response };
  }
  const error_message = "the question names nothing";
  return { ...base, error_response: { error_code: GRPC_CODES.INVALID_ARGUMENT, error_message } };
}

/** A file and all its imports that the stream does not have, the file itself in any case. */
function filesOf(types: Descriptors, file: DescriptorFile, sent: Set<string>): ProtoMessage {
  const file_descriptor_proto: Uint8Array[] = [];
  const add = (one: DescriptorFile | undefined, isWanted: boolean) => {
    if (one === undefined || (!isWanted && sent.has(one.name))) return;
    sent.add(one.name);
    file_descriptor_proto.push(one.bytes);
    for (const name of one.imports) add(types.file(name), false);
  };
  add(file, true);
  return { file_descriptor_proto };
}
