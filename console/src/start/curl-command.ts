/** Lists the models. If `/v1` has its own port, only the operator knows the address that clients use. */
export function curlCommand(key: string, separatePorts: boolean | undefined): string {
  const origin = separatePorts === true ? "http://ADDRESS" : location.origin;
  return `curl ${origin}/v1/models -H "Authorization: Bearer ${key}"`;
}
