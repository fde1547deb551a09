/** The chat widget in Vue. `key` is Vue's own, so the page's key is `api-key`; `onParleyAnswer` hears `parley-answer`. */
import { createApp, h, ref } from 'vue'

const Help = {
  setup() {
    const cited = ref(0)
    const onParleyAnswer = ({ detail }) => (cited.value = detail.citations.length)
    const chat = { assistant: 'default', 'api-key': 'xyz', mode: 'inline', heading: 'Help', onParleyAnswer }
    return () => h('main', [h('parley-chat', chat), h('output', `${cited.value} citations`)])
  },
}
createApp(Help).mount('#app')
