/** Which method a path of the REST interface means, by the `google.api.http` rules of the methods. */
import type { HttpRoute } from "../../../chain/protobuf/descriptor-file.js";
import type { QueryRegistry, ServedMethod } from "../cosmos/registry.js";

/** A route that a request matches. */
export interface MatchedRoute {
  readonly served: ServedMethod;
  /** Whether the body is the request. */
  readonly hasBody: boolean;
  /** Fields in the path, decoded. */
  readonly pathFields: readonly (readonly [string, string])[];
}

/** Paths of older releases beside those of the descriptors (D6). */
const OLDER: readonly (readonly [string, string])[] = [
  ["/cosmos/bank/v1beta1/supply/{denom=**}", "/cosmos.bank.v1beta1.Query/SupplyOf"],
];

type Segment = { readonly text: string } | { readonly field: string; readonly isRest: boolean };

interface Route {
  readonly verb: HttpRoute["verb"];
  readonly segments: readonly Segment[];
  readonly served: ServedMethod;
  readonly hasBody: boolean;
}

/** What a path is: a route, one of another verb, or nothing. */
export type Match = MatchedRoute | "other verb" | undefined;

/** All routes of a registry. */
export class Routes {
  private readonly routes: readonly Route[];

  constructor(queries: QueryRegistry) {
    const own = queries.all().flatMap((served) =>
      served.method.routes.map(({ verb, template, body }) => ({
        verb,
        segments: segmentsOf(template),
        served,
        hasBody: body === "*",
      })),
    );
    const older = OLDER.flatMap(([template, path]) => {
      const served = queries.find(path);
      const segments = segmentsOf(template);
      return served === undefined
        ? []
        : [{ verb: "GET" as const, segments, served, hasBody: false }];
    });
    // Of two that match the one with more fixed text is meant: `blocks/latest` is no height.
    this.routes = [...own, ...older].toSorted((a, b) => fixedTexts(b) - fixedTexts(a));
  }

  /**
   * Finds the route of a path without its query.
   * @throws URIError where the path cannot be decoded
   */
  match(verb: string, path: string): Match {
    const parts = path.split("/").slice(1).map(decodeURIComponent);
    // A slash at the end means nothing.
    if (parts.length > 1 && parts.at(-1) === "") parts.pop();
    let isOtherVerb = false;
    for (const route of this.routes) {
      const pathFields = fieldsOf(route.segments, parts);
      if (pathFields === undefined) continue;
      if (route.verb === verb) return { ...route, pathFields };
      isOtherVerb = true;
    }
    return isOtherVerb ? "other verb" : undefined;
  }
}

function fixedTexts({ segments }: Route): number {
  return segments.filter((segment) => "text" in segment).length;
}

function segmentsOf(template: string): Segment[] {
  return template
    .slice(1)
    .split("/")
    .map((text) => {
      const field = /^\{([a-z0-9_.]+)(=\*\*?)?\}$/.exec(text);
      return field === null ? { text } : { field: field[1] ?? "", isRest: field[2] === "=**" };
    });
}

function fieldsOf(
  segments: readonly Segment[],
  parts: readonly string[],
): readonly (readonly [string, string])[] | undefined {
  const fields: (readonly [string, string])[] = [];
  for (const [index, segment] of segments.entries()) {
    const part = parts[index];
    if (part === undefined || part === "") return undefined;
    if ("text" in segment) {
      if (segment.text !== part) return undefined;
    } else if (segment.isRest) {
      fields.push([segment.field, parts.slice(index).join("/")]);
      return fields;
    } else {
      fields.push([segment.field, part]);
    }
  }
  return parts.length === segments.length ? fields : undefined;
}
