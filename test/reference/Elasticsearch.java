import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.Plugin;

/** One Elasticsearch 7 node with plugins from the class path: `Elasticsearch.java HOME PORT PLUGIN,PLUGIN...`. */
public class Elasticsearch {
  static class Embedded extends Node {
    Embedded(Settings settings, Collection<Class<? extends Plugin>> plugins) {
      super(
          InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "reference"),
          plugins,
          false);
    }
  }

  public static void main(String[] args) throws Exception {
    List<Class<? extends Plugin>> plugins = new ArrayList<>();
    for (String name : args[2].split(",")) {
      plugins.add(Class.forName(name).asSubclass(Plugin.class));
    }
    Settings.Builder settings =
        Settings.builder()
            .put("path.home", args[0])
            .put("cluster.name", "reference")
            .put("node.name", "reference")
            .put("network.host", "127.0.0.1")
            .put("http.port", args[1])
            .put("transport.port", "0")
            .put("transport.type", "netty4")
            .put("http.type", "netty4")
            .put("discovery.type", "single-node")
            .put("cluster.routing.allocation.disk.threshold_enabled", false);
    new Embedded(settings.build(), plugins).start();
    new CountDownLatch(1).await();
  }
}
