/** The published .proto files, compiled: an artifact of the clone (`proto/README.md`). */
import { readFileSync } from "node:fs";
import { Descriptors } from "../../chain/protobuf/descriptors.js";

let loaded: Descriptors | undefined;

/** All descriptors; read once in a process. Throws INVALID_MESSAGE where the artifact is damaged. */
export function loadDescriptors(): Descriptors {
  const file = new URL("../../proto/descriptors.binpb", import.meta.url);
  loaded ??= new Descriptors(readFileSync(file));
  return loaded;
}
