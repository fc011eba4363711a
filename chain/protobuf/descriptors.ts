/**
 * What a set of published .proto files says: messages, enumerations and services by their full
 * names, read from a `google.protobuf.FileDescriptorSet`. The original bytes of each file are kept:
 * clients that ask a server for its descriptors compile them again and need every option and import.
 */
import { ChainError } from "../errors.js";
import {
  type EnumType,
  type ExtensionType,
  type MessageType,
  type MethodType,
  readFile,
  type FileContents,
  type ServiceType,
} from "./descriptor-file.js";

/** A file of the set. */
export interface DescriptorFile {
  readonly name: string;
  /** `FileDescriptorProto`, as it was compiled. */
  readonly bytes: Uint8Array;
  readonly imports: readonly string[];
}

/** All names of a descriptor set. */
export class Descriptors {
  private readonly files = new Map<string, DescriptorFile>();
  private readonly messages = new Map<string, MessageType>();
  private readonly enumerations = new Map<string, EnumType>();
  private readonly serviceTypes = new Map<string, ServiceType>();
  private readonly extensionTypes: (ExtensionType & { readonly file: string })[] = [];
  /** File of each symbol: messages, enumerations, services, methods. */
  private readonly places = new Map<string, string>();

  /** @param set `FileDescriptorSet`; every import has to be in it. Throws INVALID_MESSAGE. */
  constructor(set: Uint8Array) {
    for (const file of readFile.all(set)) this.add(file);
    for (const message of this.messages.values()) {
      message.link({
        message: (name) => this.message(name),
        enumeration: (name) => this.enumeration(name),
      });
    }
    for (const service of this.serviceTypes.values()) {
      for (const method of service.methods.values())
        this.places.set(symbolOf(method), service.file);
    }
  }

  /** Throws INVALID_MESSAGE where the set has no such message. */
  message(name: string): MessageType {
    return need(this.messages.get(name), name);
  }

  /** The message, or undefined where the set has none of that name. */
  findMessage(name: string): MessageType | undefined {
    return this.messages.get(name);
  }

  /** Throws INVALID_MESSAGE where the set has no such enumeration. */
  enumeration(name: string): EnumType {
    return need(this.enumerations.get(name), name);
  }

  /** The service, or undefined where the set has none of that name. */
  service(name: string): ServiceType | undefined {
    return this.serviceTypes.get(name);
  }

  /** All services, by name. */
  services(): readonly ServiceType[] {
    return [...this.serviceTypes.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** A file by its name. */
  file(name: string): DescriptorFile | undefined {
    return this.files.get(name);
  }

  /** The file that defines a symbol: its full name, without a dot in front. */
  fileOfSymbol(symbol: string): DescriptorFile | undefined {
    return this.files.get(this.places.get(symbol) ?? "");
  }

  /** The file that defines an extension of a message. */
  fileOfExtension(extendee: string, number: number): DescriptorFile | undefined {
    const found = this.extensionTypes.find(
      (one) => one.extendee === extendee && one.number === number,
    );
    return this.files.get(found?.file ?? "");
  }

  /** Numbers of all extensions of a message, ascending. */
  extensionNumbers(extendee: string): readonly number[] {
    const own = this.extensionTypes.filter((one) => one.extendee === extendee);
    return own.map(({ number }) => number).toSorted((a, b) => a - b);
  }

  private add(file: FileContents): void {
    const { name, bytes, imports } = file;
    this.files.set(name, { name, bytes, imports });
    const place = <Type extends { readonly name: string }>(into: Map<string, Type>, type: Type) => {
      into.set(type.name, type);
      this.places.set(type.name, name);
    };
    for (const message of file.messages) place(this.messages, message);
    for (const enumeration of file.enumerations) place(this.enumerations, enumeration);
    for (const service of file.services) place(this.serviceTypes, service);
    for (const extension of file.extensions) this.extensionTypes.push({ ...extension, file: name });
  }
}

function need<Type>(type: Type | undefined, name: string): Type {
  if (type === undefined) {
    throw new ChainError("INVALID_MESSAGE", `the descriptor set has no type "${name}"`);
  }
  return type;
}

/** `/package.Service/Method` as a symbol: `package.Service.Method`. */
function symbolOf({ path }: MethodType): string {
  return path.slice(1).replace("/", ".");
}
