/** A page of another origin than Parley's, under a policy that lets in nothing but the widget. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface WidgetPage {
  /** the page's address @param attributes of the element @param scheme `color-scheme` of the page */
  address(attributes?: Record<string, string>, scheme?: string): string
  server: Server
}

const CSS = `html { font-family: system-ui, sans-serif } body { margin: 0 }
  .light { color-scheme: light } .dark { color-scheme: dark; background: #0e1113 }
  parley-chat:is(:not([mode]), [mode="inline"]) { margin: 16px; --parley-height: calc(100dvh - 32px) }`

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

/** @param parley where it answers @param given attributes that the element has in any case */
export async function serveWidgetPage(parley: string, given: Record<string, string>): Promise<WidgetPage> {
  const policy = [
    "default-src 'none'",
    `script-src ${parley}`,
    `connect-src ${parley}`,
    "style-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
  ].join('; ')
  const server = createServer(({ url: path = '/' }, response) => {
    const { pathname, searchParams } = new URL(path, 'http://page')
    if (pathname === '/page.css') return response.setHeader('content-type', 'text/css').end(CSS)
    if (pathname !== '/') return response.writeHead(204).end()
    const { attributes, scheme } = JSON.parse(searchParams.get('with') ?? '{}')
    const written = Object.entries({ ...given, ...attributes })
      .map(([name, value]) => ` ${name}="${escaped(String(value))}"`)
      .join('')
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.setHeader('content-security-policy', policy)
    response.end(`<!doctype html>
<html lang="en" class="${scheme ?? 'light'}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>A page</title><link rel="stylesheet" href="/page.css">
<script type="module" src="${parley}/widget/parley-chat.js"></script></head>
<body><main><h1>A page</h1><parley-chat${written}></parley-chat></main></body></html>`)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    server,
    address: (attributes = {}, scheme = 'light') =>
      `${origin}/?with=${encodeURIComponent(JSON.stringify({ attributes, scheme }))}`,
  }
}
